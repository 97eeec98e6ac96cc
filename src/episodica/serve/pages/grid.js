// Many answers at once: a grid that can be filtered by class, sorted by doubt and saved.

import { effectOf, verdictWord } from './answer.js';
import { answered, askAgain, asked, clearAsked, doubt, outdated } from './asked.js';
import { openLarge } from './correct.js';
import { asCsv, download } from './csv.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { note, working } from './messages.js';
import { model } from './model.js';
import { count, percent, t } from './strings.js';

const AT_FIRST = 120; // cards; more on request
const ORDERS = {
  came: () => 0,
  doubt: (a, b) => doubt(b) - doubt(a),
  class: (a, b) => verdictWord(a.answer).localeCompare(verdictWord(b.answer)),
};

export function answerGrid() {
  let filter = null; // null: all; { unknown: true }, { problem: true } or { name }
  let most = AT_FIRST;
  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': t('showOnly') });
  const order = el(
    'select',
    { 'aria-label': t('order'), onchange: () => update() },
    ...Object.keys(ORDERS).map((key) => el('option', { value: key }, t(`order_${key}`))),
  );
  const save = el(
    'button',
    { type: 'button', onclick: () => download('answers.csv', asCsv(asked.items), 'text/csv') },
    icon('download'),
    t('saveCsv'),
  );
  const clear = el('button', { type: 'button', class: 'quiet', onclick: clearAsked }, t('clear'));
  const status = el('p', { class: 'hint', role: 'status' });
  const stale = el('div', {});
  const cards = el('ul', { class: 'answers' });
  const more = el(
    'button',
    {
      type: 'button',
      onclick: () => {
        most *= 3;
        update();
      },
    },
    t('showMore'),
  );
  const node = el(
    'div',
    { class: 'stack tight' },
    el('div', { class: 'row apart' }, status, el('div', { class: 'row' }, order, save, clear)),
    stale,
    chips,
    cards,
    el('div', { class: 'row' }, more),
  );
  const kept = new Map(); // item -> [what it shows, its node]

  const fits = (wanted) => (item) => {
    if (wanted === null) return true;
    if (wanted.problem) return Boolean(item.problem);
    if (!item.answer) return false;
    return wanted.unknown ? item.answer.unknown : !item.answer.unknown && item.answer.class === wanted.name;
  };

  function update() {
    const { items } = asked;
    const done = items.filter(({ answer, problem }) => answer || problem).length;
    status.textContent =
      asked.working && done < items.length ? t('askingMany', done, items.length) : t('answeredMany', answered().length);
    if (filter && !items.some(fits(filter))) filter = null;
    fillChips(items);
    const old = outdated().length && !asked.working && model.now.classes.length;
    stale.replaceChildren(
      ...(old
        ? [
            note(
              'plain',
              el('p', {}, t('outdated')),
              el(
                'button',
                { type: 'button', onclick: (event) => working(event.currentTarget, askAgain) },
                icon('turn'),
                t('askAgain'),
              ),
            ),
          ]
        : []),
    );
    let shown = items.filter(fits(filter));
    if (order.value !== 'came') {
      const known = shown.filter(({ answer }) => answer).sort(ORDERS[order.value]);
      shown = [...known, ...shown.filter(({ answer }) => !answer)];
    }
    cards.replaceChildren(...shown.slice(0, most).map((item) => card(item, shown)));
    more.hidden = shown.length <= most;
    for (const item of kept.keys()) if (!items.includes(item)) kept.delete(item);
  }

  function fillChips(items) {
    const counts = new Map();
    for (const { answer } of items)
      if (answer && !answer.unknown) counts.set(answer.class, (counts.get(answer.class) || 0) + 1);
    const classes = [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
    const unknown = items.filter(fits({ unknown: true })).length;
    const problems = items.filter(fits({ problem: true })).length;
    const all = [
      [t('all'), null, items.length],
      ...classes.map(([name, number]) => [name, { name }, number]),
      ...(unknown ? [[t('unknown'), { unknown: true }, unknown]] : []),
      ...(problems ? [[t('noPictures'), { problem: true }, problems]] : []),
    ];
    const focused = [...chips.children].indexOf(document.activeElement);
    chips.replaceChildren(
      ...all.map(([words, wanted, number]) =>
        el(
          'button',
          {
            type: 'button',
            class: 'chip',
            'aria-pressed': String(JSON.stringify(wanted) === JSON.stringify(filter)),
            onclick: () => {
              filter = wanted;
              most = AT_FIRST;
              update();
            },
          },
          words,
          el('span', { class: 'number' }, count(number)),
        ),
      ),
    );
    if (focused >= 0) chips.children[Math.min(focused, all.length - 1)].focus();
  }

  function card(item, shown) {
    const waits = !item.answer && asked.working;
    const now = JSON.stringify([item.answer, item.problem, item.taught, item.effect, waits]);
    const before = kept.get(item);
    if (before && before[0] === now) {
      before[2].shown = shown;
      return before[1];
    }
    const among = { shown };
    const face = el('img', { src: item.url, alt: '', loading: 'lazy' });
    face.addEventListener('error', () => face.replaceWith(el('span', { class: 'nameplate' }, item.file.name)));
    const { answer, problem, taught } = item;
    const filled = el('span', {});
    if (answer) filled.style.width = `${100 * answer.probability}%`;
    const below = problem
      ? [el('span', { class: 'bad' }, problem)]
      : !answer
        ? [el('span', { class: 'hint' }, t(waits ? 'asking' : 'noAnswer'))]
        : [
            el(
              'span',
              { class: answer.unknown ? 'said unknown' : 'said' },
              el('span', { class: 'called' }, verdictWord(answer)),
              el('span', { class: 'number' }, answer.unknown ? '' : percent(answer.probability)),
            ),
            answer.unknown
              ? el('small', { class: 'called' }, t('mostLikeShort', answer.class))
              : el('span', { class: 'bar', 'aria-hidden': 'true' }, filled),
            taught
              ? el('small', { class: 'taught' }, icon('check'), t('taughtAs', taught))
              : effectOf(item)
                ? el('small', { class: 'effect' }, t('was', verdictWord(item.effect.before)))
                : null,
          ];
    const opens = el(
      'button',
      { type: 'button', class: 'answer', onclick: () => openLarge(among.shown, item) },
      el('span', { class: 'face' }, face),
      el('span', { class: 'hidden' }, `${item.file.name}:`),
      ...below.filter(Boolean),
    );
    const node = el('li', {}, opens);
    const focused = before?.[1].contains(document.activeElement);
    kept.set(item, [now, node, among]);
    if (focused) queueMicrotask(() => opens.focus());
    return node;
  }

  return { node, update };
}
