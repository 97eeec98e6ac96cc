// The page of `episodica serve`. Names and messages only ever become text: nothing here parses HTML.

import { el, percent } from './dom.js';
import { Tray, complain } from './tray.js';

const AT_ONCE = 20; // images of a request, so that answers appear as they come
const BARS = 5; // classes shown of an answer
const $ = (id) => document.getElementById(id);

class Refused extends Error {
  constructor(problem) {
    super(problem.detail);
    Object.assign(this, problem);
  }
}

async function ask(path, how) {
  let answer;
  try {
    answer = await fetch(path, how);
  } catch {
    throw new Refused({ detail: 'The server did not answer. Is it running, and are the images not too large?' });
  }
  const json = (answer.headers.get('content-type') || '').includes('json');
  const said = json ? await answer.json() : { detail: await answer.text() };
  if (!answer.ok) throw new Refused(said);
  return said;
}

// The model's classes

const examples = new Tray('Drop one to five images of it here, or choose them');
$('examples').append(examples.node);

function show({ classes }) {
  $('count').textContent = classes.length === 1 ? '1 class' : `${classes.length} classes`;
  $('filter').hidden = classes.length < 12;
  $('known').replaceChildren(...classes.map(line));
  filter();
}

function line(known) {
  const kind = known.learned ? 'learned' : 'remembered';
  const images = known.images === 1 ? '1 image' : `${known.images} images`;
  const remove = el('button', { type: 'button', class: 'small', 'aria-label': `Remove ${known.name}` }, 'Remove');
  let asked = false;
  const calm = () => { asked = false; remove.textContent = 'Remove'; remove.classList.remove('danger'); };
  remove.addEventListener('blur', calm);
  remove.addEventListener('keydown', (event) => { if (event.key === 'Escape') calm(); });
  remove.addEventListener('click', () => {
    if (asked) { change(`/classes?name=${encodeURIComponent(known.name)}`, { method: 'DELETE' }, `${known.name} was removed.`); return; }
    asked = true;
    remove.textContent = 'Remove for good?';
    remove.classList.add('danger');
  });
  const picture = known.example ? el('img', { src: known.example, alt: '', width: 40, height: 40, loading: 'lazy' }) : el('span', { class: 'blank' });
  return el('li', { 'data-name': known.name }, picture, el('span', { class: 'called' }, known.name), el('small', {}, `${images}, ${kind}`), remove);
}

function filter() {
  const wanted = $('filter').value.trim().toLowerCase();
  for (const item of $('known').children) item.hidden = !item.dataset.name.toLowerCase().includes(wanted);
}

async function change(path, how, done) {
  complain($('classes-error'), null);
  try {
    show(await ask(path, how));
    tell(done);
    return true;
  } catch (problem) {
    place(problem, { name: (text) => complain($('name-error'), text, $('name')), images: (text, i) => examples.blame(text, i) }, (text) => complain($('classes-error'), text));
    return false;
  }
}

$('filter').addEventListener('input', filter);
$('add').addEventListener('submit', async (event) => {
  event.preventDefault();
  complain($('name-error'), null, $('name'));
  examples.forgive();
  const name = $('name').value.trim();
  if (!name) { complain($('name-error'), 'Give the class a name.', $('name')); $('name').focus(); return; }
  if (!examples.items.length) { examples.blame('Add at least one image of the class.'); examples.focus(); return; }
  const form = new FormData();
  form.append('name', name);
  for (const { file } of examples.items) form.append('images', file, file.name);
  if (await busy(event.submitter, () => change('/classes', { method: 'POST', body: form }, `${name} was added.`))) {
    $('name').value = '';
    examples.clear();
    $('name').focus();
  }
});

// Classes of one's own

const groups = [];

function addGroup(focus) {
  const number = groups.length + 1;
  const name = el('input', { id: `own-${number}`, autocomplete: 'off', maxlength: 80, placeholder: `Class ${number}`, 'aria-describedby': `own-error-${number}` });
  const error = el('p', { class: 'error', id: `own-error-${number}`, role: 'alert', hidden: true });
  const tray = new Tray('Drop images of it here, or choose them');
  const group = { name, tray, error, called: () => name.value.trim() || name.placeholder };
  const item = el('li', {}, el('label', { for: name.id, class: 'hidden' }, `Name of class ${number}`), name, error, tray.node);
  groups.push(group);
  $('groups').append(item);
  if (focus) name.focus();
}

$('another').addEventListener('click', () => addGroup(true));
addGroup();
addGroup();

for (const choice of document.getElementsByName('among')) {
  choice.addEventListener('change', () => {
    $('model').hidden = choice.value !== 'model';
    $('own').hidden = choice.value !== 'own';
    queries.forgive();
  });
}
const ownChosen = () => !$('own').hidden;

// The images that are asked about

const queries = new Tray('Drop the images to be recognised here, or choose them', { wide: true });
queries.list.before($('go')); // above the answers, where it stays in reach however many there are
$('queries').append(queries.node);
$('clear').addEventListener('click', () => { queries.clear(); tell(''); queries.focus(); });
$('recognise').addEventListener('click', () => busy($('recognise'), recognise));

async function recognise() {
  queries.forgive();
  for (const { tray, error, name } of groups) { tray.forgive(); complain(error, null, name); }
  const support = ownChosen() ? groups.flatMap((group) => group.tray.items.map((item, place) => ({ group, item, place }))) : [];
  if (!queries.items.length) { queries.blame('Add at least one image.'); queries.focus(); return; }
  if (ownChosen() && !support.length) { groups[0].tray.blame('Add at least one image of a class.'); groups[0].tray.focus(); return; }
  const asked = [...queries.items];
  let done = 0;
  for (let start = 0; start < asked.length; start += AT_ONCE) {
    tell(`${done} of ${asked.length} …`);
    done += await recogniseSome(asked.slice(start, start + AT_ONCE), support);
  }
  tell(done === asked.length ? `${done} recognised.` : `${done} of ${asked.length} recognised: see the messages.`);
}

// Where one image is refused the others are asked about again without it.
async function recogniseSome(asked, support) {
  let left = asked;
  while (left.length) {
    const form = new FormData();
    for (const { file } of left) form.append('images', file, file.name);
    for (const { group, item } of support) {
      form.append('support', item.file, item.file.name);
      form.append('support_class', group.called());
    }
    try {
      const { answers } = await ask('/classify', { method: 'POST', body: form });
      answers.forEach((answer, i) => left[i].below.replaceChildren(...answered(answer, support)));
      return left.length;
    } catch (problem) {
      const one = problem.field === 'images' && problem.index !== null ? left[problem.index] : null;
      if (!one) {
        place(problem, {
          support: (text, i) => support[i].group.tray.blame(text, support[i].place),
          support_class: (text, i) => complain(support[i].group.error, text, support[i].group.name),
        }, (text) => queries.blame(text));
        return 0;
      }
      queries.blame(problem.message, queries.items.indexOf(one));
      left = left.filter((item) => item !== one);
    }
  }
  return 0;
}

function answered(answer, support) {
  const verdict = el('p', { class: answer.unknown ? 'verdict unknown' : 'verdict' },
    answer.unknown ? 'Unknown' : answer.class,
    el('small', {}, answer.unknown ? `nearest: ${answer.class}, ${percent(answer.probability)} %` : `${percent(answer.probability)} %`));
  const ranked = Object.entries(answer.scores).sort((a, b) => b[1] - a[1]);
  const bars = el('ul', { class: 'bars', 'aria-label': 'Probabilities' }, ...ranked.slice(0, BARS).map(bar));
  if (ranked.length > BARS) bars.append(el('li', { class: 'hint' }, `and ${ranked.length - BARS} more`));
  return [verdict, bars, nearest(answer, support)].filter(Boolean);
}

function bar([name, probability]) {
  const filled = el('span', { class: 'filled' });
  filled.style.width = `${100 * probability}%`;
  return el('li', {}, el('span', { class: 'called' }, name), el('span', { class: 'track', 'aria-hidden': 'true' }, filled), el('span', { class: 'value' }, `${percent(probability)} %`));
}

function nearest({ nearest: near }, support) {
  if (!near) return null;
  const src = near.index === null ? near.image : support[near.index].item.url;
  const words = near.index === null ? 'most like this image of it' : `most like ${near.image}`;
  return el('p', { class: 'nearest' }, el('img', { src, alt: words, width: 48, height: 48 }), el('small', {}, words));
}

// Words

function tell(text) { $('status').textContent = text; }

// A message goes where its cause is; `elsewhere` takes what has no place.
function place(problem, places, elsewhere) {
  const put = places[problem.field];
  const needsIndex = problem.field && problem.field.startsWith('support');
  if (put && !(needsIndex && problem.index === null)) put(problem.message, problem.index);
  else elsewhere(problem.message);
}

async function busy(button, work) {
  if (button.getAttribute('aria-busy')) return undefined;
  button.setAttribute('aria-busy', 'true'); // not disabled: the focus stays where it is
  try { return await work(); } finally { button.removeAttribute('aria-busy'); }
}

change('/classes', {}, '');
