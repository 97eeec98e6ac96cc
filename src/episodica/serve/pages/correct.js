// The large view of one picture that was asked about, where its answer is set right with one click.

import { bars, effectOf, nearest, verdict } from './answer.js';
import { asked, take, teachItems, unwatchAsked, watchAsked } from './asked.js';
import { openDialog, pickClass } from './dialogs.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { note, toast, working } from './messages.js';
import { can } from './model.js';
import { t } from './strings.js';

export async function setRight(item, name, button) {
  await working(button, () => teachItems([item], name));
}

export async function pickFor(item, button) {
  const name = await pickClass({ title: t('whatIsIt') });
  if (name) await setRight(item, name, button);
}

export function large(item) {
  const picture = el('img', { src: item.url, alt: item.file.name });
  picture.addEventListener('error', () => picture.replaceWith(el('span', { class: 'nameplate' }, item.file.name)));
  const beside = item.problem
    ? [note('error', el('b', {}, item.file.name), ` ${item.problem}`)]
    : !item.answer
      ? asked.working
        ? [el('p', { class: 'hint' }, t('asking')), el('div', { class: 'bar waiting' }, el('span', {}))]
        : [el('p', { class: 'hint' }, t('noAnswer'))]
      : [
          verdict(item.answer),
          taughtNote(item),
          effectOf(item),
          bars(item.answer, can('correct') ? (name, button) => setRight(item, name, button) : null),
          corrections(item),
          nearest(item.answer),
        ];
  return el(
    'article',
    { class: 'large', 'aria-label': item.file.name },
    el('div', { class: 'photo' }, picture),
    el('div', { class: 'stack tight', 'aria-live': 'polite' }, ...beside.filter(Boolean)),
  );
}

function taughtNote({ taught }) {
  return taught ? note('good', t('nowPictureOf', taught)) : null;
}

function corrections(item) {
  if (!can('correct')) return null;
  return el(
    'div',
    { class: 'row' },
    el('p', { class: 'hint grow' }, t('pressToCorrect')),
    el(
      'button',
      { type: 'button', onclick: (event) => pickFor(item, event.currentTarget) },
      icon('plus'),
      t('otherClass'),
    ),
  );
}

// One of several pictures, large, with the ones before and after it in reach.
export async function openLarge(items, item) {
  let stop = () => {};
  await openDialog(
    (close) => {
      let at = items.indexOf(item);
      const holder = el('div', {});
      const title = el('h2', { class: 'called' });
      const step = (by) => {
        at = Math.min(Math.max(at + by, 0), items.length - 1);
        show();
      };
      const back = el(
        'button',
        { type: 'button', class: 'round', 'aria-label': t('before'), onclick: () => step(-1) },
        icon('back'),
      );
      const on = el(
        'button',
        { type: 'button', class: 'round turned', 'aria-label': t('after'), onclick: () => step(1) },
        icon('back'),
      );
      const out = el(
        'button',
        {
          type: 'button',
          class: 'quiet',
          onclick: () => {
            const gone = items[at];
            close(null);
            take(gone);
            toast(t('tookOut', gone.file.name));
          },
        },
        icon('trash'),
        t('takeOutOfList'),
      );
      const shut = el(
        'button',
        { type: 'button', class: 'round', 'aria-label': t('close'), autofocus: true, onclick: () => close(null) },
        icon('close'),
      );
      let drawn = null;
      const show = () => {
        const { answer, effect, taught, problem } = items[at];
        const now = JSON.stringify([at, answer, effect, taught, problem]);
        if (now === drawn) return; // so that the focus stays while other answers come
        drawn = now;
        title.textContent = items[at].file.name;
        back.disabled = at === 0;
        on.disabled = at === items.length - 1;
        holder.replaceChildren(large(items[at]));
      };
      show();
      const follow = () => {
        if (asked.items.includes(items[at])) show();
      };
      watchAsked(follow);
      stop = () => unwatchAsked(follow);
      const keys = (event) => {
        if (event.key === 'ArrowLeft') step(-1);
        if (event.key === 'ArrowRight') step(1);
      };
      return [
        el('div', { class: 'row apart top', onkeydown: keys }, title, el('div', { class: 'row' }, back, on, shut)),
        holder,
        el('div', { class: 'row' }, out),
      ];
    },
    { class: 'wide' },
  );
  stop();
}
