// The camera asks all the time: what it sees, the answer beside it, and a press that says what it really is.

import { addImages, classify } from './api.js';
import { bars, nearest, verdict } from './answer.js';
import { Camera, Repeater } from './camera.js';
import { pickClass } from './dialogs.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { note, working } from './messages.js';
import { can, changed, limits } from './model.js';
import { t } from './strings.js';

const BETWEEN_QUESTIONS = 300; // milliseconds

// `keep(file, answer)` gets a picture that a person wants beside the others.
export function livePanel({ keep, onClose }) {
  const video = el('video', { playsinline: true, muted: true, 'aria-label': t('cameraView') });
  const camera = new Camera(video);
  const problem = el('div', {});
  const answerNode = el('div', { class: 'stack tight' });
  let last = null; // { file, answer }: what is shown
  let busy = false; // while a person acts on what is shown

  const asking = new Repeater(async () => {
    const file = busy || document.hidden ? null : await camera.frame();
    if (!file) return;
    try {
      await classify([file], {
        limits: limits(),
        onAnswer: (_, answer) => {
          if (!busy) show({ file, answer });
        },
        onProblem: () => {},
      });
      problem.replaceChildren();
    } catch (refused) {
      problem.replaceChildren(note('error', refused.message));
    }
  }, BETWEEN_QUESTIONS);

  function show(now) {
    last = now;
    const focused = [...answerNode.querySelectorAll('button')].indexOf(document.activeElement);
    answerNode.replaceChildren(
      ...[
        verdict(now.answer),
        bars(now.answer, can('correct') ? (name, button) => teach(name, button) : null),
        nearest(now.answer),
      ].filter(Boolean),
    );
    answerNode.querySelectorAll('button')[focused]?.focus();
  }

  async function teach(name, button) {
    const { file } = last;
    busy = true;
    await working(button, async () =>
      changed(await addImages({ name, files: [file], limits: limits(), what: 'correct', known: 'move' })),
    );
    busy = false;
  }

  async function other(button) {
    if (!last) return;
    busy = true;
    const { file } = last;
    const name = await pickClass({ title: t('whatIsIt') });
    if (name)
      await working(button, async () =>
        changed(await addImages({ name, files: [file], limits: limits(), what: 'correct', known: 'move' })),
      );
    busy = false;
  }

  const tools = el(
    'div',
    { class: 'row' },
    can('correct')
      ? el('button', { type: 'button', onclick: (event) => other(event.currentTarget) }, icon('plus'), t('otherClass'))
      : null,
    el(
      'button',
      {
        type: 'button',
        onclick: () => {
          if (last) keep(last.file, last.answer);
        },
      },
      icon('picture'),
      t('keepPicture'),
    ),
    el(
      'button',
      { type: 'button', class: 'round', 'aria-label': t('turnCamera'), onclick: () => open(() => camera.turn()) },
      icon('turn'),
    ),
    el('button', { type: 'button', class: 'quiet', onclick: () => close() }, icon('stop'), t('closeCamera')),
  );
  const node = el(
    'div',
    { class: 'large live card' },
    el('div', { class: 'photo' }, video),
    el('div', { class: 'stack tight' }, problem, answerNode, tools),
  );

  async function open(how) {
    const why = await how();
    problem.replaceChildren(...(why ? [note('error', why)] : []));
    if (!why) asking.start();
  }

  function close() {
    asking.stop();
    camera.stop();
    node.remove();
    onClose();
  }

  return { node, open: () => open(() => camera.start()), close };
}
