// New classes, or more pictures of known ones, before they are taught: one draft for each class.

import { addImages, remember } from './api.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { byClass } from './intake.js';
import { note, say, working } from './messages.js';
import { changed, classNames, knownClass, limits, model } from './model.js';
import { sources } from './sources.js';
import { list, t } from './strings.js';
import { Tray, leftOut } from './tray.js';

let drafted = 0;

// `fixed` is the name of the class where pictures of one class alone are wanted.
export function composer({ fixed = null, words = t('dropToTeach'), onDone = () => {} } = {}) {
  const drafts = [];
  let ready = 0; // pictures, as was said last
  const holder = el('ol', { class: 'drafts' });
  const results = el('div', { class: 'stack tight' });
  const teach = el('button', { class: 'main' }, icon('teach'), el('span', {}));
  const clear = el(
    'button',
    {
      type: 'button',
      class: 'quiet',
      onclick: () => {
        restart();
        from.node.querySelector('input').focus();
      },
    },
    t('clear'),
  );
  const progress = el(
    'div',
    { class: 'bar', role: 'progressbar', 'aria-label': t('teaching'), 'aria-valuemin': 0, hidden: true },
    el('span', {}),
  );
  const from = sources({ words, take });
  const foot = el('div', { class: 'row foot' }, teach, clear);
  const node = el(
    'form',
    { class: fixed === null ? 'composer' : 'composer fixed', novalidate: true },
    holder,
    from.node,
    results,
    progress,
    foot,
  );
  node.addEventListener('submit', (event) => {
    event.preventDefault();
    working(teach, send, wrong);
  });

  function addDraft(name = '') {
    const id = `draft-${(drafted += 1)}`;
    const field = el('input', {
      id,
      value: fixed ?? name,
      maxlength: limits().name_length,
      autocomplete: 'off',
      placeholder: t('classNameExample'),
      'aria-describedby': `${id}-said`,
    });
    const said = el('p', { id: `${id}-said`, class: 'hint' });
    const tray = new Tray({ onChange: update });
    const draft = {
      field,
      said,
      tray,
      get name() {
        return field.value.trim();
      },
    };
    field.addEventListener('input', () => {
      field.removeAttribute('aria-invalid');
      update();
    });
    draft.node = el(
      'li',
      {},
      fixed === null ? el('label', { class: 'field' }, t('className'), field) : null,
      said,
      tray.node,
    );
    drafts.push(draft);
    holder.append(draft.node);
    return draft;
  }

  function draftFor(name) {
    if (fixed !== null) return drafts[0];
    const first = drafts[0];
    if (!name) return first;
    const same = drafts.find((draft) => draft.name === name);
    if (same) return same;
    if (!first.name && !first.tray.items.length) {
      first.field.value = name;
      return first;
    }
    return addDraft(name);
  }

  async function take(found) {
    results.replaceChildren();
    const { classes, beside } = byClass(found);
    await Promise.all([...classes].map(([name, files]) => draftFor(name).tray.add(files)));
    if (beside.length) results.replaceChildren(...leftOut(beside.map(({ name }) => ({ name, why: t('badBeside') }))));
    const most = drafts.find((draft) => !draft.name) || null;
    if (most && most.tray.items.length && document.activeElement === document.body) most.field.focus();
  }

  function update() {
    const full = drafts.filter(({ tray }) => tray.items.length);
    const pictures = full.reduce((sum, { tray }) => sum + tray.items.length, 0);
    const some = pictures > 0 || drafts.some(({ tray }) => tray.left.length || tray.busy);
    teach.lastChild.textContent = full.length > 1 ? t('teachSeveral', full.length, pictures) : t('teachOne', pictures);
    if (pictures !== ready && !drafts.some(({ tray }) => tray.busy)) {
      ready = pictures;
      say(pictures ? t('picturesReady', pictures) : '');
    }
    foot.hidden = !some && fixed !== null;
    clear.hidden = !some;
    for (const { said, name } of drafts)
      said.textContent = fixed === null && knownClass(name) ? t('addedToKnown', name) : '';
    node.classList.toggle('several', drafts.length > 1);
    from.node.classList.toggle('small', drafts.length > 1 || (fixed !== null && some));
  }

  function restart() {
    for (const { tray } of drafts) tray.clear();
    drafts.splice(0);
    holder.replaceChildren();
    results.replaceChildren();
    addDraft();
    update();
  }

  function wrong(text, problem) {
    results.replaceChildren(note('error', text));
    if (problem?.field === 'class' || problem?.field === 'name') blame(drafts.find(({ tray }) => tray.items.length));
  }

  function blame(draft) {
    draft.field.setAttribute('aria-invalid', 'true');
    draft.field.focus();
  }

  async function send() {
    const full = drafts.filter(({ tray }) => tray.items.length);
    const nameless = (full.length ? full : drafts).find(({ name }) => !name);
    if (nameless) {
      wrong(t('nameMissing'));
      blame(nameless);
      return;
    }
    if (!full.length) {
      wrong(t('picturesMissing'));
      from.node.querySelector('input').focus();
      return;
    }
    const batch = `${Date.now()}-${Math.random().toString(36).slice(2)}`;
    const whole = full.reduce((sum, { tray }) => sum + tray.items.length, 0);
    const fresh = full.map(({ name }) => name).filter((name) => !classNames().includes(name));
    const add = model.now.kind === 'trained' ? remember : addImages;
    const files = [];
    let last = null;
    let done = 0;
    show(0, whole);
    try {
      for (const { name, tray } of full) {
        const answer = await add({
          name,
          files: tray.files,
          limits: limits(),
          batch,
          onProgress: (some) => show(done + some, whole),
        });
        done += tray.items.length;
        files.push(...answer.files);
        last = answer.change ? answer : last || answer;
      }
    } finally {
      progress.hidden = true;
    }
    const left = files.filter(({ status }) => status === 'bad' || status === 'duplicate').map(told);
    const taken = files.length - left.length;
    restart();
    results.replaceChildren(...leftOut(left), ...(taken ? [] : [note('doubt', t('nothingTaken'))]));
    await changed(last, taken ? (fresh.length ? t('nowKnown', list(fresh), taken) : t('nowMore', taken)) : null);
    onDone();
  }

  function show(done, whole) {
    progress.hidden = false;
    progress.setAttribute('aria-valuemax', whole);
    progress.setAttribute('aria-valuenow', done);
    progress.firstChild.style.width = `${(100 * Math.max(done, 0.3)) / whole}%`;
  }

  restart();
  return {
    node,
    paste: from.paste,
    close: from.close,
    update,
    take,
    focus: () => (fixed === null ? drafts[0].field.focus() : from.node.querySelector('input').focus()),
  };
}

function told({ image, status, why, duplicate_of: elsewhere }) {
  if (status === 'bad') return { name: image, why: (why || '').replace(`${image}: `, '') };
  return { name: image, why: elsewhere ? t('badKnown', elsewhere) : why || '' };
}
