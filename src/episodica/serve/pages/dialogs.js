// Questions to the person, each in a dialog that the keyboard can answer: yes or no, a name, a class.

import { el } from './dom.js';
import { thumbnail } from './api.js';
import { icon } from './icons.js';
import { raiseMessages } from './messages.js';
import { limits, model } from './model.js';
import { t } from './strings.js';

let opened = 0; // dialogs may lie over each other

// Shows a dialog, named by its first heading, and waits for its end; what `content(close)` makes calls close(value), Escape
// closes with null.
export function openDialog(content, properties = {}) {
  return new Promise((done) => {
    let value = null;
    const dialog = el('dialog', properties);
    dialog.append(
      ...content((given) => {
        value = given;
        dialog.close();
      }),
    );
    const heading = dialog.querySelector('h2');
    heading.id = `dialog-${(opened += 1)}`;
    dialog.setAttribute('aria-labelledby', heading.id);
    dialog.addEventListener('close', () => {
      raiseMessages(); // out of it, before it goes
      dialog.remove();
      done(value);
    });
    dialog.addEventListener('click', (event) => {
      if (event.target === dialog) dialog.close();
    });
    document.body.append(dialog);
    dialog.showModal();
    raiseMessages();
  });
}

export function confirmed({ title, text, yes, danger = false }) {
  return openDialog((close) => [
    el(
      'form',
      { method: 'dialog' },
      el('h2', {}, title),
      el('p', {}, text),
      el(
        'div',
        { class: 'row' },
        el('button', { type: 'button', onclick: () => close(null) }, t('cancel')),
        el('button', { type: 'button', class: danger ? 'main danger' : 'main', onclick: () => close(true) }, yes),
      ),
    ),
  ]);
}

export function askForName({ title, text, value = '', yes }) {
  return openDialog((close) => {
    const name = el('input', {
      value,
      maxlength: limits().name_length,
      autocomplete: 'off',
      required: true,
      autofocus: true,
    });
    return [
      el(
        'form',
        {
          method: 'dialog',
          onsubmit: (event) => {
            event.preventDefault();
            close(name.value.trim() || null);
          },
        },
        el('h2', {}, title),
        text ? el('p', {}, text) : null,
        el('label', { class: 'field' }, t('className'), name),
        el(
          'div',
          { class: 'row' },
          el('button', { type: 'button', onclick: () => close(null) }, t('cancel')),
          el('button', { class: 'main' }, yes),
        ),
      ),
    ];
  });
}

// A class of the model, or a new name: a field that filters as one types, and a list.
export function pickClass({ title, except = null }) {
  return openDialog((close) => {
    const classes = model.now.classes.filter(({ name }) => name !== except);
    const wanted = el('input', {
      type: 'search',
      autocomplete: 'off',
      maxlength: limits().name_length,
      autofocus: true,
      'aria-label': t('findOrName'),
      placeholder: t('findOrName'),
    });
    const shown = el('ul', { class: 'picks' });
    const fill = () => {
      const text = wanted.value.trim();
      const fitting = classes.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
      const fresh = text && !classes.some(({ name }) => name === text) && text !== except;
      shown.replaceChildren(
        ...(fresh
          ? [
              el(
                'li',
                {},
                el(
                  'button',
                  { type: 'button', class: 'quiet', onclick: () => close(text) },
                  icon('plus'),
                  t('newClassCalled', text),
                ),
              ),
            ]
          : []),
        ...fitting.map(({ name, example }) =>
          el(
            'li',
            {},
            el(
              'button',
              { type: 'button', class: 'quiet', onclick: () => close(name) },
              example
                ? el('img', { src: thumbnail(example, 96), alt: '', width: 40, height: 40, loading: 'lazy' })
                : el('span', { class: 'blank' }),
              el('span', { class: 'called' }, name),
            ),
          ),
        ),
      );
    };
    wanted.addEventListener('input', fill);
    fill();
    const first = (event) => {
      event.preventDefault();
      shown.querySelector('button')?.click();
    };
    return [
      el(
        'form',
        { method: 'dialog', onsubmit: first },
        el('h2', {}, title),
        wanted,
        shown,
        el('div', { class: 'row' }, el('button', { type: 'button', onclick: () => close(null) }, t('cancel'))),
      ),
    ];
  });
}
