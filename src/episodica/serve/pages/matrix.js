// The confusion matrix: a row for each class, a column for each answer; the darker, the more often. A table that is a chart.

import { el } from './dom.js';
import { count, percent, t } from './strings.js';

const MOST = 24; // classes: of more, those that are mixed up most

export function confusionMatrix(classes, confusion) {
  const table = new Map(); // class -> answer -> images
  const wrong = new Map(classes.map((name) => [name, 0]));
  for (const { class: name, answer, images } of confusion) {
    if (!table.has(name)) table.set(name, new Map());
    table.get(name).set(answer, images);
    if (name !== answer) for (const one of [name, answer]) wrong.set(one, (wrong.get(one) || 0) + images);
  }
  const shown =
    classes.length <= MOST
      ? classes
      : [...classes]
          .sort((a, b) => wrong.get(b) - wrong.get(a))
          .slice(0, MOST)
          .sort((a, b) => classes.indexOf(a) - classes.indexOf(b));
  const said = el('p', { class: 'hint said-of-cell', 'aria-hidden': 'true' }, t('matrixHint'));
  const row = (name) => {
    const answers = table.get(name) || new Map();
    const whole = [...answers.values()].reduce((sum, images) => sum + images, 0);
    return el(
      'tr',
      {},
      el('th', { scope: 'row' }, el('a', { href: `#/class/${encodeURIComponent(name)}` }, name)),
      ...shown.map((answer) => {
        const images = answers.get(answer) || 0;
        const cell = el(
          'td',
          { class: name === answer ? 'right' : images ? 'wrong' : null },
          images ? count(images) : '',
        );
        cell.style.setProperty('--share', whole ? images / whole : 0);
        cell.addEventListener('pointerenter', () => {
          said.textContent = t('matrixCell', name, answer, images, whole, percent(whole ? images / whole : 0));
        });
        return cell;
      }),
    );
  };
  const head = el('tr', {}, el('td', {}), ...shown.map((name) => el('th', { scope: 'col' }, el('span', {}, name))));
  return el(
    'div',
    {},
    classes.length > MOST ? el('p', { class: 'hint' }, t('matrixMost', MOST, classes.length)) : null,
    el(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': t('matrixTitle') },
      el(
        'table',
        { class: shown.length > 14 ? 'matrix small' : 'matrix' },
        el('caption', { class: 'hidden' }, t('matrixText')),
        el('thead', {}, head),
        el('tbody', {}, ...shown.map(row)),
      ),
    ),
    said,
  );
}
