// Short messages: to everybody (toast), to those who listen to the page (say), and beside their cause (note).

import { el, setText } from './dom.js';
import { icon } from './icons.js';
import { t } from './strings.js';

const STAYS = 9000; // milliseconds
const $ = (id) => document.getElementById(id);

export function say(text) {
  setText($('said'), text);
}

// Messages lie over everything, and what lies below an open dialog can be neither seen well nor pressed: so into the topmost one.
export function raiseMessages() {
  const over = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
  if ($('toasts').parentNode !== over) over.append($('toasts'), $('said'));
}

export function toast(text, { label = null, act = null, kind = 'plain' } = {}) {
  const close = () => {
    clearTimeout(timer);
    node.remove();
  };
  const node = el(
    'div',
    { class: `toast ${kind}` },
    el('p', {}, text),
    act
      ? el(
          'button',
          {
            type: 'button',
            onclick: () => {
              close();
              act();
            },
          },
          label,
        )
      : null,
    el('button', { type: 'button', class: 'round', 'aria-label': t('close'), onclick: close }, icon('close')),
  );
  const shown = $('toasts');
  shown.replaceChildren(node); // the newest alone
  let timer = setTimeout(close, STAYS);
  for (const stay of ['mouseenter', 'focusin']) node.addEventListener(stay, () => clearTimeout(timer));
  for (const go of ['mouseleave', 'focusout'])
    node.addEventListener(go, () => {
      timer = setTimeout(close, STAYS / 2);
    });
  return node;
}

const SIGNS = { error: 'warning', doubt: 'warning', good: 'check', plain: 'info' };

export function note(kind, ...said) {
  return el(
    'div',
    { class: `note ${kind}`, role: kind === 'error' ? 'alert' : null },
    icon(SIGNS[kind]),
    el('div', {}, ...said),
  );
}

// A button that works: it cannot be pressed twice, and keeps the focus. What goes wrong is told.
export async function working(button, work, onProblem = (text) => toast(text, { kind: 'error' })) {
  if (button.getAttribute('aria-busy')) return undefined;
  button.setAttribute('aria-busy', 'true');
  try {
    return await work();
  } catch (problem) {
    if (problem.status === undefined) throw problem; // ours, not the server's
    onProblem(problem.message, problem);
    return undefined;
  } finally {
    button.removeAttribute('aria-busy');
  }
}
