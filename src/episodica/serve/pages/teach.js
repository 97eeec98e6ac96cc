// The classes of the model, and a place to add one.

import { thumbnail } from './api.js';
import { composer } from './composer.js';
import { el } from './dom.js';
import { can, model } from './model.js';
import { note } from './messages.js';
import { section } from './section.js';
import { percent, t } from './strings.js';

const MANY = 12; // classes from which on there is a field to find one

export function teachView() {
  const lead = el('p', { class: 'lead' });
  const composing = composer();
  const find = el('input', {
    type: 'search',
    'aria-label': t('findClass'),
    placeholder: t('findClass'),
    oninput: () => filter(),
  });
  const known = el('ul', { class: 'classes' });
  const title = el('h2', {});
  const teaching = el('div', { class: 'card first' }, el('h2', {}, t('newClass')), composing.node);
  const node = section(
    t('view_teach'),
    lead,
    el(
      'div',
      { class: 'stack' },
      can('add') || model.now.kind === 'trained' ? teaching : note('plain', model.now.cannot.add || ''),
      el(
        'div',
        { class: 'stack tight' },
        el('div', { class: 'row apart', id: 'classes-bar' }, title, el('div', { class: 'finder' }, find)),
        known,
      ),
    ),
  );
  let shown = null;

  function filter() {
    const wanted = find.value.trim().toLowerCase();
    for (const item of known.children) item.hidden = !item.dataset.name.toLowerCase().includes(wanted);
  }

  function update() {
    const { classes, state } = model.now;
    lead.textContent = t(classes.length ? 'teachLead' : 'emptyLead');
    title.textContent = t('classesKnown', classes.length);
    title.parentNode.hidden = !classes.length;
    find.parentNode.hidden = classes.length < MANY;
    composing.update();
    if (state === shown) return;
    shown = state;
    known.replaceChildren(...classes.map(card));
    filter();
  }

  return { node, update, paste: composing.paste, leave: composing.close, focusFirst: composing.focus };
}

function card({ name, images, known_from: from, example, examples, accuracy }) {
  const pictures = (examples ?? (example ? [example] : [])).slice(0, 4);
  const mosaic = el(
    'span',
    { class: `mosaic of-${pictures.length}` },
    ...pictures.map((address) =>
      el('img', { src: thumbnail(address, pictures.length > 1 ? 160 : 256), alt: '', loading: 'lazy' }),
    ),
  );
  const facts = [
    t('pictures', from ?? images),
    accuracy === null || accuracy === undefined ? null : t('rightShare', percent(accuracy)),
  ];
  return el(
    'li',
    { 'data-name': name },
    el(
      'a',
      { href: `#/class/${encodeURIComponent(name)}`, class: 'class' },
      mosaic,
      el('span', { class: 'called' }, name),
      el('small', {}, facts.filter(Boolean).join(' · ')),
    ),
  );
}
