// Pictures that fit nothing, by likeness: a group gets a name and becomes a class, joins one, or is thrown away.

import { groups } from './api.js';
import { ask, takeBack, teachItems, throwAway, unknownItems, unwatchAsked, watchAsked } from './asked.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { note, toast, working } from './messages.js';
import { classNames, knownClass, limits, model } from './model.js';
import { leading, section } from './section.js';
import { t } from './strings.js';

const MOST = 2000; // pictures of a request
const AT_FIRST = 12; // pictures of a group

export function unknownView() {
  const body = el('div', { class: 'stack' });
  const suggestions = el('datalist', { id: 'known-names' });
  const node = section(t('view_unknown'), leading(t('unknownLead')), body, suggestions);
  let shown = null; // what the groups were made of
  let asking = false;

  async function update() {
    suggestions.replaceChildren(...classNames().map((name) => el('option', { value: name })));
    const items = unknownItems().slice(0, MOST);
    const now = JSON.stringify([items.map(({ answer }) => answer.asked), model.now.state]);
    if (now === shown || asking) return;
    shown = now;
    if (!items.length) {
      body.replaceChildren(welcome());
      return;
    }
    asking = true;
    if (!body.querySelector('.group')) body.replaceChildren(el('div', { class: 'bar waiting' }, el('span', {})));
    try {
      draw(items, await grouped(items));
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      body.replaceChildren(note('error', problem.message));
    } finally {
      asking = false;
    }
    update(); // what has come meanwhile
  }

  async function grouped(items) {
    const ids = items.map(({ answer }) => answer.asked);
    const first = await groups(ids);
    if (!first.missing.length) return first.groups;
    const lost = new Set(first.missing); // the server has forgotten them: it is asked again
    await ask(items.filter(({ answer }) => lost.has(answer.asked)));
    return (await groups(ids)).groups;
  }

  function draw(items, found) {
    const byId = new Map(items.map((item) => [item.answer.asked, item]));
    body.replaceChildren(
      el(
        'div',
        { class: 'groups' },
        ...found.map(({ asked, class: like }, i) => group(asked.map((id) => byId.get(id)).filter(Boolean), like, i)),
      ),
    );
  }

  function group(items, like, i) {
    const out = new Set(); // that stay behind
    const name = el('input', {
      list: 'known-names',
      maxlength: limits().name_length,
      autocomplete: 'off',
      placeholder: t('groupNameExample'),
    });
    const make = el('button', { class: 'main' }, icon('teach'), el('span', {}));
    const words = () => {
      make.lastChild.textContent = knownClass(name.value.trim()) ? t('putInto', name.value.trim()) : t('makeClass');
    };
    const chosen = () => items.filter((item) => !out.has(item));
    name.addEventListener('input', () => {
      name.removeAttribute('aria-invalid');
      words();
    });
    words();
    const send = async (called) => {
      if (!called) {
        name.setAttribute('aria-invalid', 'true');
        name.focus();
        return;
      }
      if (chosen().length) await teachItems(chosen(), called, 'add');
    };
    const throwOut = () => {
      const gone = chosen();
      throwAway(gone);
      toast(t('thrownAway', gone.length), { label: t('undo'), act: () => takeBack(gone) });
      document.getElementById('title').focus();
    };
    const title = t('group', i + 1, items.length);
    return el(
      'form',
      {
        class: items.length > 1 ? 'card group' : 'card group alone',
        'aria-label': title,
        onsubmit: (event) => {
          event.preventDefault();
          working(make, () => send(name.value.trim()));
        },
      },
      el('h2', {}, title),
      ...shownOf(items, (item) => picture(item, out)),
      el('label', { class: 'field' }, t('nameGroup'), name),
      el(
        'div',
        { class: 'row' },
        make,
        like && classNames().includes(like)
          ? el(
              'button',
              { type: 'button', onclick: (event) => working(event.currentTarget, () => send(like)) },
              t('putInto', like),
            )
          : null,
        el('button', { type: 'button', class: 'quiet danger', onclick: throwOut }, icon('trash'), t('throwAway')),
      ),
    );
  }

  // The first ones; the others come on request, and belong to the group all the same.
  function shownOf(items, drawn) {
    const list = el('ul', { class: 'pictures' }, ...items.slice(0, AT_FIRST).map(drawn));
    if (items.length <= AT_FIRST) return [list];
    const more = el('button', { type: 'button', class: 'quiet' }, t('showAll', items.length));
    more.addEventListener('click', () => {
      list.append(...items.slice(AT_FIRST).map(drawn));
      more.remove();
      list.children[AT_FIRST].firstChild.focus();
    });
    return [list, more];
  }

  function picture(item, out) {
    const toggle = el(
      'button',
      { type: 'button', class: 'frame', 'aria-pressed': 'true' },
      el('img', { src: item.url, alt: item.file.name, loading: 'lazy' }),
      el('span', { class: 'tick' }, icon('check')),
    );
    toggle.addEventListener('click', () => {
      if (!out.delete(item)) out.add(item);
      toggle.setAttribute('aria-pressed', String(!out.has(item)));
    });
    return el('li', {}, toggle);
  }

  const welcome = () =>
    el(
      'div',
      { class: 'card welcome' },
      icon('unknown'),
      el('h2', {}, t('noUnknown')),
      el('p', {}, t('noUnknownText')),
      el('a', { class: 'button main', href: '#/ask' }, t('toAsk')),
    );

  watchAsked(update);
  return { node, update, paste: () => false, leave: () => {}, end: () => unwatchAsked(update) };
}
