// The frame of the page: which view is shown, the bar above it, the language, and what every view needs of the keyboard.

import { askView } from './ask.js';
import { unknownItems, watchAsked } from './asked.js';
import { classView } from './class_view.js';
import { el, setText } from './dom.js';
import { openDialog } from './dialogs.js';
import { historyView } from './history.js';
import { icon } from './icons.js';
import { note, say, toast } from './messages.js';
import { model, start, undo, watch } from './model.js';
import { modelView } from './model_view.js';
import { myName, setMyName } from './person.js';
import { qualityView } from './quality.js';
import { LANGUAGES, chooseLanguage, chosenLanguage, count, percent, t } from './strings.js';
import { teachView } from './teach.js';
import { unknownView } from './unknown.js';

const VIEWS = {
  teach: teachView,
  ask: askView,
  unknown: unknownView,
  quality: qualityView,
  history: historyView,
  model: modelView,
  class: classView,
};
const TABS = ['teach', 'ask', 'unknown', 'quality', 'history', 'model'];
const $ = (id) => document.getElementById(id);
const made = new Map(); // views by name; a view of a class is made anew
let shown = null; // { name, argument, view }

/** The text of an address that anybody may have written. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function wanted() {
  const [, name, argument] = /^#\/(\w+)(?:\/(.*))?$/.exec(location.hash) || [];
  if (Object.hasOwn(VIEWS, name ?? '')) return { name, argument: argument ? decoded(argument) : null };
  return { name: model.now.classes.length ? 'ask' : 'teach', argument: null };
}

function show() {
  const { name, argument } = wanted();
  if (shown && shown.name === name && shown.argument === argument) return;
  const first = shown === null;
  shown?.view.leave();
  if (name === 'class' || !made.has(name)) made.set(name, VIEWS[name](argument));
  const view = made.get(name);
  shown = { name, argument, view };
  $('main').replaceChildren(view.node);
  view.update();
  drawFrame();
  scrollTo(0, 0);
  if (!first) $('title').focus();
}

function drawFrame() {
  const { now } = model;
  const at = shown?.name === 'class' ? 'teach' : shown?.name;
  const waiting = unknownItems().length;
  document.title = [shown?.argument ?? (shown ? t(`view_${shown.name}`) : null), now?.name, 'episodica']
    .filter(Boolean)
    .join(' · ');
  setText($('model-name'), now?.name ?? 'episodica');
  setText(
    $('model-says'),
    !now ? '' : now.accuracy ? t('rightShare', percent(now.accuracy.value)) : t('classesShort', now.classes.length),
  );
  $('undo').disabled = !now?.undo;
  $('views').replaceChildren(
    ...TABS.map((name) =>
      el(
        'a',
        { href: `#/${name}`, 'aria-current': name === at ? 'page' : null },
        icon(name),
        t(`tab_${name}`),
        name === 'unknown' && waiting
          ? el('span', { class: 'count' }, String(waiting), el('span', { class: 'hidden' }, t('waiting')))
          : null,
      ),
    ),
  );
  const notices = model.lost ? [note('error', t('lost'))] : now?.drift?.moved ? [note('doubt', t('drifted', count(now.drift.images)))] : [];
  $('notices').replaceChildren(...notices);
}

let drawnTabs = '';
function update() {
  if (!model.now) {
    $('notices').replaceChildren(note('error', model.problem));
    return;
  }
  if (!shown) show();
  else shown.view.update();
  const now = JSON.stringify([model.now.version, unknownItems().length, model.lost, chosenLanguage(), shown.name]);
  if (now === drawnTabs) return;
  drawnTabs = now;
  const held = [...$('views').children].indexOf(document.activeElement);
  drawFrame();
  if (held >= 0) $('views').children[held].focus();
}

function words() {
  document.documentElement.lang = chosenLanguage();
  setText($('skip'), t('skip'));
  $('views').setAttribute('aria-label', t('views'));
  $('undo').replaceChildren(icon('undo'), el('span', {}, t('undo')));
  $('undo').setAttribute('aria-label', t('undoLast'));
  $('settings').replaceChildren(icon('menu'));
  $('settings').setAttribute('aria-label', t('settings'));
}

function changeLanguage(wish) {
  chooseLanguage(wish);
  words();
  for (const view of made.values()) {
    view.leave();
    view.end?.();
  }
  made.clear();
  shown = null;
  show();
  say(t('languageChosen'));
}

function settings() {
  return openDialog((close) => {
    const name = el('input', { value: myName(), maxlength: 80, autocomplete: 'name' });
    const language = el(
      'select',
      {},
      ...Object.entries(LANGUAGES).map(([code, { ownName }]) =>
        el('option', { value: code, selected: code === chosenLanguage(), lang: code }, ownName),
      ),
    );
    const done = (event) => {
      event.preventDefault();
      setMyName(name.value);
      close(true);
      if (language.value !== chosenLanguage()) changeLanguage(language.value);
    };
    return [
      el(
        'form',
        { method: 'dialog', onsubmit: done, class: 'stack' },
        el('h2', {}, t('settings')),
        el('label', { class: 'field' }, t('yourName'), name, el('small', {}, t('yourNameText'))),
        el('label', { class: 'field' }, t('language'), language),
        el(
          'div',
          { class: 'row' },
          el('button', { type: 'button', onclick: () => close(null) }, t('cancel')),
          el('button', { class: 'main' }, t('done')),
        ),
      ),
    ];
  });
}

const typing = () => document.activeElement?.matches('input:not([type=file], [type=checkbox]), textarea, select');

words();
$('skip').addEventListener('click', (event) => {
  event.preventDefault();
  $('main').focus();
});
$('undo').addEventListener('click', () => undo());
$('settings').addEventListener('click', settings);
window.addEventListener('hashchange', () => {
  if (model.now) show();
});
document.addEventListener('paste', (event) => {
  if (!document.querySelector('dialog') && shown?.view.paste(event.clipboardData)) event.preventDefault();
});
document.addEventListener('keydown', (event) => {
  if (
    (event.ctrlKey || event.metaKey) &&
    !event.shiftKey &&
    event.key === 'z' &&
    !typing() &&
    !document.querySelector('dialog')
  ) {
    event.preventDefault();
    undo();
  }
});
for (const kind of ['dragover', 'drop']) window.addEventListener(kind, (event) => event.preventDefault()); // a file dropped beside would replace the page
window.addEventListener('unhandledrejection', ({ reason }) =>
  toast(String(reason?.message ?? reason), { kind: 'error' }),
);
watch(update);
watchAsked(update);
await start();
