// Ask: drop pictures, or let the camera look. One picture is shown large, many as a grid.

import { addItem, askAgain, askFiles, asked, clearAsked, unanswered, watchAsked, unwatchAsked } from './asked.js';
import { hasCamera } from './camera.js';
import { large } from './correct.js';
import { el } from './dom.js';
import { answerGrid } from './grid.js';
import { icon } from './icons.js';
import { livePanel } from './live.js';
import { note, working } from './messages.js';
import { model } from './model.js';
import { sources } from './sources.js';
import { leading, section } from './section.js';
import { t } from './strings.js';

export function askView() {
  const empty = el(
    'div',
    { class: 'card welcome', hidden: true },
    icon('teach'),
    el('h2', {}, t('nothingKnown')),
    el('p', {}, t('nothingKnownText')),
    el('a', { href: '#/teach', class: 'button main' }, t('teachFirst')),
  );
  const from = sources({
    words: t('dropToAsk'),
    take: (found) => askFiles(found.map(({ file }) => file)),
    camera: false,
    main: true,
  });
  const cameraHolder = el('div', {});
  const look = el('button', { type: 'button', onclick: () => openCamera() }, icon('camera'), t('liveCamera'));
  if (hasCamera()) from.node.querySelector('.row').append(look);
  const grid = answerGrid();
  const results = el('div', { class: 'stack' });
  const body = el('div', { class: 'stack' }, from.node, cameraHolder, results);
  const node = section(t('view_ask'), leading(t('askLead')), empty, body);
  let live = null;
  let drawn = null;

  function openCamera() {
    if (live) return;
    live = livePanel({
      keep: addItem,
      onClose: () => {
        live = null;
        look.hidden = false;
        update();
        look.focus();
      },
    });
    look.hidden = true;
    cameraHolder.replaceChildren(live.node);
    update();
    live.open();
  }

  const again = () =>
    el(
      'button',
      { type: 'button', onclick: (event) => working(event.currentTarget, askAgain) },
      icon('turn'),
      t('askAgain'),
    );

  function update() {
    const nothing = !model.now.classes.length;
    empty.hidden = !nothing;
    body.hidden = nothing && !asked.items.length;
    from.node.hidden = nothing;
    from.node.classList.toggle('small', asked.items.length > 0 || live !== null);
    const { items, problem } = asked;
    const trouble = problem ? [note('error', el('p', {}, problem), unanswered().length ? again() : null)] : [];
    if (!items.length) {
      drawn = null;
      results.replaceChildren(...trouble);
      return;
    }
    if (items.length === 1) {
      const [{ answer, effect, taught, problem: bad, id }] = items;
      const now = JSON.stringify([id, answer, effect, taught, bad, problem]);
      if (now === drawn) return;
      drawn = now;
      const held = results.contains(document.activeElement);
      results.replaceChildren(
        ...trouble,
        el(
          'div',
          { class: 'card' },
          large(items[0]),
          el(
            'div',
            { class: 'row end' },
            el('button', { type: 'button', class: 'quiet', onclick: clearAsked }, t('clear')),
          ),
        ),
      );
      if (held) results.querySelector('.score')?.focus();
      return;
    }
    drawn = null;
    if (grid.node.parentNode !== results || results.firstChild !== (trouble[0] ?? grid.node))
      results.replaceChildren(...trouble, grid.node);
    grid.update();
  }

  watchAsked(update);
  return { node, update, paste: (clipboard) => model.now.classes.length > 0 && from.paste(clipboard), leave: () => live?.close(), end: () => unwatchAsked(update) };
}
