// The ways to bring pictures, in one place: a surface to drop them on, the two dialogues, the clipboard, the camera.

import { el } from './dom.js';
import { Camera, Repeater, hasCamera } from './camera.js';
import { icon } from './icons.js';
import { fromDialogue, fromDrop, fromPaste } from './intake.js';
import { note, say } from './messages.js';
import { t } from './strings.js';

const BETWEEN_FRAMES = 200; // milliseconds, while the button is held

const chooser = (words, sign, properties, take, kind = '') => {
  const input = el('input', { type: 'file', class: 'hidden', multiple: true, ...properties });
  input.addEventListener('change', () => {
    take(fromDialogue(input.files));
    input.value = '';
  });
  return el('label', { class: `button ${kind}` }, input, icon(sign), words);
};

// `take(found)` gets { file, folders } of what came. `main`: nothing on the page is pressed more often than the dialogue's button.
export function sources({ words, take, folders = true, camera = true, main = false }) {
  const panel = camera && hasCamera() ? recorder((file) => take([{ file, folders: [] }])) : null;
  const buttons = el(
    'div',
    { class: 'row' },
    chooser(t('choosePictures'), 'picture', { accept: 'image/*,.heic,.heif,.tif,.tiff' }, take, main ? 'main' : ''),
    folders ? chooser(t('chooseFolder'), 'folder', { webkitdirectory: true }, take, 'folders') : null,
    panel?.toggle ?? null,
    camera && !hasCamera()
      ? chooser(t('takePicture'), 'camera', { accept: 'image/*', capture: 'environment' }, take)
      : null,
  );
  const surface = el('div', { class: 'drop' }, icon('picture'), el('p', {}, words), buttons);
  surface.addEventListener('dragover', (event) => {
    event.preventDefault();
    surface.classList.add('over');
  });
  for (const end of ['dragleave', 'drop']) surface.addEventListener(end, () => surface.classList.remove('over'));
  surface.addEventListener('drop', async (event) => {
    event.preventDefault();
    take(await fromDrop(event.dataTransfer));
  });
  return {
    node: el('div', { class: 'sources' }, surface, panel?.node ?? null),
    paste: (clipboard) => {
      const found = fromPaste(clipboard);
      if (found.length) take(found);
      return found.length > 0;
    },
    close: () => panel?.close(),
  };
}

// A camera whose button takes a picture, or several a second while it is held, by finger, mouse or space bar.
function recorder(onFrame) {
  const video = el('video', { playsinline: true, muted: true, 'aria-label': t('cameraView') });
  const camera = new Camera(video);
  const problem = el('div', {});
  const held = new Repeater(async () => {
    const file = await camera.frame();
    if (file) {
      frames += 1;
      onFrame(file);
    }
  }, BETWEEN_FRAMES);
  let frames = 0;
  const record = el('button', { type: 'button', class: 'main record' }, icon('camera'), t('holdToRecord'));
  const begin = () => {
    if (!held.running) {
      frames = 0;
      record.classList.add('on');
      held.start();
    }
  };
  const end = () => {
    if (held.running) {
      held.stop();
      record.classList.remove('on');
      say(t('framesTaken', Math.max(1, frames)));
    }
  };
  record.addEventListener('pointerdown', (event) => {
    record.setPointerCapture(event.pointerId);
    begin();
  });
  for (const kind of ['pointerup', 'pointercancel', 'blur']) record.addEventListener(kind, end);
  record.addEventListener('contextmenu', (event) => event.preventDefault()); // a long touch
  record.addEventListener('keydown', (event) => {
    if (event.key === ' ' || event.key === 'Enter') {
      event.preventDefault();
      begin();
    }
  });
  record.addEventListener('keyup', (event) => {
    if (event.key === ' ' || event.key === 'Enter') {
      event.preventDefault();
      end();
    }
  });
  const turn = el(
    'button',
    { type: 'button', class: 'round', 'aria-label': t('turnCamera'), onclick: () => open(() => camera.turn()) },
    icon('turn'),
  );
  const node = el(
    'div',
    { class: 'recorder', hidden: true },
    video,
    problem,
    el('div', { class: 'row' }, record, turn),
  );
  const toggle = el(
    'button',
    { type: 'button', 'aria-expanded': 'false', onclick: () => (node.hidden ? open(() => camera.start()) : close()) },
    icon('camera'),
    t('useCamera'),
  );

  async function open(how) {
    node.hidden = false;
    toggle.setAttribute('aria-expanded', 'true');
    const why = await how();
    problem.replaceChildren(...(why ? [note('error', why)] : []));
    for (const part of [video, record, turn]) part.hidden = Boolean(why);
    if (!why) record.focus();
  }

  function close() {
    end();
    camera.stop();
    node.hidden = true;
    toggle.setAttribute('aria-expanded', 'false');
  }

  return { node, toggle, close };
}
