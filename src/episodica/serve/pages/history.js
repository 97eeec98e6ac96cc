// Who changed what, and when; the last changes can be undone, newest first.

import { readHistory, undo as undoChange } from './api.js';
import { changeSentence, whoSaid } from './changes.js';
import { confirmed } from './dialogs.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { note, working } from './messages.js';
import { changed, model } from './model.js';
import { leading, section } from './section.js';
import { clock, day, t } from './strings.js';

export function historyView() {
  const body = el('div', { class: 'stack' });
  const node = section(t('view_history'), leading(t('historyLead')), body);
  let shown = null;

  async function update() {
    if (model.now.version === shown) return;
    shown = model.now.version;
    try {
      draw(await readHistory());
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      body.replaceChildren(note('error', problem.message));
    }
  }

  function draw({ undo, changes }) {
    if (!changes.length) {
      body.replaceChildren(
        el(
          'div',
          { class: 'card welcome' },
          icon('history'),
          el('h2', {}, t('noHistory')),
          el('p', {}, t('noHistoryText')),
        ),
      );
      return;
    }
    const byDay = Map.groupBy ? Map.groupBy(changes, ({ when }) => day(when)) : grouped(changes);
    const forgotten = changes.findIndex(({ what }) => what === 'forget'); // which gave up every way back
    const since = forgotten < 0 ? changes : changes.slice(0, forgotten);
    const open = since.filter(({ undone, what }) => !undone && what !== 'undo');
    const reach = new Map(
      open
        .slice(
          Math.max(
            0,
            open.findIndex(({ number }) => number === undo),
          ),
        )
        .map(({ number }, i) => [number, i + 1]),
    );
    if (undo === null) reach.clear();
    body.replaceChildren(
      ...[...byDay].map(([date, of]) =>
        el(
          'div',
          { class: 'card' },
          el('h2', {}, date),
          el('ol', { class: 'changes' }, ...of.map((change) => line(change, reach.get(change.number)))),
        ),
      ),
    );
  }

  function line(change, steps) {
    const { who, when, undone, number, what } = change;
    const back =
      steps === 1
        ? el(
            'button',
            { type: 'button', onclick: (event) => working(event.currentTarget, () => goBack(change, 1)) },
            icon('undo'),
            t('undo'),
          )
        : steps
          ? el(
              'button',
              {
                type: 'button',
                class: 'quiet',
                onclick: (event) => working(event.currentTarget, () => goBack(change, steps)),
              },
              icon('undo'),
              t('backToBefore'),
            )
          : null;
    return el(
      'li',
      { class: undone ? 'undone' : null, 'data-what': what, 'data-number': number },
      el('time', { datetime: when, class: 'number' }, clock(when)),
      el(
        'div',
        {},
        el('p', {}, changeSentence(change), undone ? el('small', {}, ` ${t('wasUndone')}`) : null),
        el('small', {}, whoSaid(who)),
      ),
      back,
    );
  }

  async function goBack(change, steps) {
    if (
      steps > 1 &&
      !(await confirmed({ title: t('backTitle'), text: t('backText', steps), yes: t('backYes', steps) }))
    )
      return;
    for (let i = 0; i < steps; i += 1) await changed(await undoChange(model.now.undo));
  }

  return { node, update, paste: () => false, leave: () => {} };
}

function grouped(changes) {
  const days = new Map();
  for (const change of changes) {
    const date = day(change.when);
    days.set(date, [...(days.get(date) || []), change]);
  }
  return days;
}
