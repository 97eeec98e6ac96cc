// One class: its pictures, which can be taken out or put elsewhere; more of them; another name; forgetting it for good.

import * as api from './api.js';
import { composer } from './composer.js';
import { askForName, confirmed, pickClass } from './dialogs.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { note, working } from './messages.js';
import { can, changed, classNames, knownClass, model } from './model.js';
import { percent, t } from './strings.js';

export function classView(name) {
  const lead = el('p', { class: 'lead' });
  const pictures = el('ul', { class: 'pictures' });
  const chosen = new Set(); // digests
  const chosenBar = el('div', { class: 'row chosen', hidden: true });
  const more = can('add') && can('undo') ? composer({ fixed: name, words: t('dropMore', name) }) : null; // trained models take new classes alone
  const act = (words, sign, work, kind = '') =>
    el(
      'button',
      { type: 'button', class: kind, onclick: (event) => working(event.currentTarget, work) },
      icon(sign),
      words,
    );
  const node = el(
    'section',
    { 'aria-labelledby': 'title' },
    el(
      'header',
      {},
      el('a', { href: '#/teach', class: 'back' }, icon('back'), t('allClasses')),
      el(
        'div',
        { class: 'row apart' },
        el('h1', { id: 'title', tabindex: -1 }, name),
        el(
          'div',
          { class: 'row' },
          can('rename') ? act(t('rename'), 'pencil', newName) : null,
          act(t('forget'), 'trash', forget, 'danger'),
        ),
      ),
      lead,
    ),
    el(
      'div',
      { class: 'stack' },
      el('div', { class: 'card' }, el('h2', { class: 'hidden' }, t('picturesOf', name)), chosenBar, pictures),
      more ? el('div', { class: 'card' }, el('h2', {}, t('addMore')), more.node) : null,
    ),
  );
  let shown = null;
  let leaving = false; // the class is about to be called otherwise, or gone

  async function update() {
    if (leaving) return;
    const known = knownClass(name);
    if (!known) {
      location.hash = '#/teach';
      return;
    }
    const from = known.known_from ?? known.images;
    lead.textContent = [
      t('pictures', from),
      known.accuracy === null || known.accuracy === undefined ? null : t('rightShare', percent(known.accuracy)),
      from > known.images ? t('keptOf', known.images) : null,
    ]
      .filter(Boolean)
      .join(' · ');
    more?.update();
    if (model.now.state === shown) return;
    shown = model.now.state;
    try {
      const { images } = await api.readImages(name);
      for (const digest of [...chosen]) if (!images.some((one) => one.digest === digest)) chosen.delete(digest);
      pictures.replaceChildren(...images.map(picture));
      if (!images.length)
        pictures.replaceChildren(el('li', { class: 'wide' }, el('p', { class: 'hint' }, t('noneKept'))));
      showChosen();
    } catch (problem) {
      if (problem.status !== 404) pictures.replaceChildren(el('li', { class: 'wide' }, note('error', problem.message)));
    }
  }

  function picture({ image, digest, answer }, i) {
    const wrong = answer && answer !== name;
    const words = wrong ? t('pictureTakenFor', i + 1, answer) : t('pictureNumber', i + 1);
    const face = el('img', { src: api.thumbnail(image, 224), alt: words, loading: 'lazy' });
    const below = wrong ? el('span', { class: 'taken' }, t('takenFor', answer)) : null;
    if (!can('remove')) return el('li', {}, el('span', { class: 'frame' }, face, below));
    const toggle = el(
      'button',
      { type: 'button', class: 'frame', 'aria-pressed': String(chosen.has(digest)) },
      face,
      el('span', { class: 'tick' }, icon('check')),
      below,
    );
    toggle.addEventListener('click', () => {
      if (!chosen.delete(digest)) chosen.add(digest);
      toggle.setAttribute('aria-pressed', String(chosen.has(digest)));
      showChosen();
    });
    return el('li', {}, toggle);
  }

  function showChosen() {
    chosenBar.hidden = !can('remove') || !pictures.querySelector('button');
    chosenBar.replaceChildren(
      ...(chosen.size
        ? [
            el('b', {}, t('chosen', chosen.size)),
            act(t('putElsewhere'), 'turn', move),
            act(t('takeOutOfClass'), 'trash', remove),
            el(
              'button',
              {
                type: 'button',
                class: 'quiet',
                onclick: () => {
                  chosen.clear();
                  for (const one of pictures.querySelectorAll('[aria-pressed]'))
                    one.setAttribute('aria-pressed', 'false');
                  showChosen();
                },
              },
              t('chooseNone'),
            ),
          ]
        : [el('p', { class: 'hint' }, t('chooseHint'))]),
    );
  }

  async function move() {
    const to = await pickClass({ title: t('putWhere'), except: name });
    if (to) await changed(await api.moveImages([...chosen], to));
  }

  async function remove() {
    await changed(await api.removeImages([...chosen]));
  }

  async function newName() {
    const to = await askForName({ title: t('renameTitle', name), value: name, yes: t('rename') });
    if (!to || to === name) return;
    const merge = classNames().includes(to);
    if (merge && !(await confirmed({ title: t('mergeTitle', to), text: t('mergeText', name, to), yes: t('merge') })))
      return;
    const answer = await api.rename(name, to, merge);
    leaving = true;
    await changed(answer);
    location.hash = `#/class/${encodeURIComponent(to)}`;
  }

  async function forget() {
    if (
      !(await confirmed({
        title: t('forgetTitle', name),
        text: t('forgetText', name),
        yes: t('forgetYes'),
        danger: true,
      }))
    )
      return;
    const answer = await api.forget(name);
    leaving = true;
    await changed(answer);
    location.hash = '#/teach';
  }

  return { node, update, paste: more ? more.paste : () => false, leave: () => more?.close(), title: name };
}
