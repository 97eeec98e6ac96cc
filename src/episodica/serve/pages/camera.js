// A camera: a stream in a video, and frames of it as files.

import { t } from './strings.js';

const SIDE = 640; // pixels of the longer side of a frame: more than any encoder here looks at

export const hasCamera = () => Boolean(navigator.mediaDevices?.getUserMedia);

let taken = 0;

export class Camera {
  constructor(video) {
    this.video = video;
    this.stream = null;
    this.facing = 'environment';
    this.canvas = document.createElement('canvas');
  }

  get open() {
    return this.stream !== null;
  }

  // A sentence where it does not open.
  async start() {
    this.stop();
    try {
      this.stream = await navigator.mediaDevices.getUserMedia({
        audio: false,
        video: { facingMode: this.facing, width: { ideal: 1280 } },
      });
    } catch (problem) {
      return t(problem.name === 'NotAllowedError' ? 'cameraRefused' : 'cameraMissing');
    }
    this.video.srcObject = this.stream;
    await this.video.play();
    return null;
  }

  async turn() {
    this.facing = this.facing === 'environment' ? 'user' : 'environment';
    return this.start();
  }

  stop() {
    this.stream?.getTracks().forEach((track) => track.stop());
    this.stream = null;
    this.video.srcObject = null;
  }

  async frame() {
    const { videoWidth: width, videoHeight: height } = this.video;
    if (!width) return null;
    const scale = Math.min(1, SIDE / Math.max(width, height));
    Object.assign(this.canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    this.canvas.getContext('2d').drawImage(this.video, 0, 0, this.canvas.width, this.canvas.height);
    const blob = await new Promise((done) => {
      this.canvas.toBlob(done, 'image/jpeg', 0.92);
    });
    taken += 1;
    return new File([blob], `${t('cameraFile')}-${String(taken).padStart(3, '0')}.jpg`, { type: 'image/jpeg' });
  }
}

// Does something again and again while it is wanted, never twice at once.
export class Repeater {
  constructor(work, pause) {
    Object.assign(this, { work, pause, running: false });
  }

  async start() {
    if (this.running) return;
    this.running = true;
    while (this.running) {
      const began = performance.now();
      await this.work();
      await new Promise((done) => {
        setTimeout(done, Math.max(0, this.pause - (performance.now() - began)));
      });
    }
  }

  stop() {
    this.running = false;
  }
}
