// What every view is: a title, which takes the focus when the view is opened, a sentence about it, and the rest.

import { el } from './dom.js';

export const section = (title, lead, ...rest) =>
  el(
    'section',
    { 'aria-labelledby': 'title' },
    el('header', {}, el('h1', { id: 'title', tabindex: -1 }, title), lead),
    ...rest,
  );

export const leading = (words) => el('p', { class: 'lead' }, words);
