// What the charts share: drawing anew when the width changes, a colour for each class, and the numbers as a table.

import { el } from './dom.js';
import { t } from './strings.js';

// A holder in which `draw(width)` stands, at any width the window gives it.
export function fitted(draw) {
  const holder = el('div', { class: 'chart' });
  let drawn = 0;
  new ResizeObserver(
    ([
      {
        contentRect: { width },
      },
    ]) => {
      const whole = Math.round(width);
      if (!whole || whole === drawn) return;
      drawn = whole;
      holder.replaceChildren(draw(whole));
    },
  ).observe(holder);
  return holder;
}

// Neighbours in the list are far apart on the circle; the middle lightness shows on light and dark.
export const colourOf = (i) => `oklch(${0.62 + 0.1 * (i % 2)} 0.15 ${(i * 137.5 + 165) % 360})`;

export function numbers(heads, rows) {
  const line = (cells, tag) =>
    el('tr', {}, ...cells.map((cell) => el(tag, tag === 'th' ? { scope: 'col' } : {}, cell)));
  return el(
    'details',
    {},
    el('summary', {}, t('asTable')),
    el(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': t('asTable') },
      el(
        'table',
        { class: 'number' },
        el('thead', {}, line(heads, 'th')),
        el('tbody', {}, ...rows.map((row) => line(row, 'td'))),
      ),
    ),
  );
}
