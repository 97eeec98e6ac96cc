// The pictures that were asked about, with their answers. They wait in this browser; the server keeps none of them.

import { addImages, classify } from './api.js';
import { changed, limits, model, watchUndone } from './model.js';
import { t } from './strings.js';

export const asked = { items: [], working: false, problem: null };
const watchers = new Set();
let numbered = 0;

export const watchAsked = (watcher) => watchers.add(watcher);
export const unwatchAsked = (watcher) => watchers.delete(watcher);
let telling = false;
function tell() {
  // once for all that happens in one go
  if (telling) return;
  telling = true;
  queueMicrotask(() => {
    telling = false;
    watchers.forEach((watcher) => watcher());
  });
}

export const answered = () => asked.items.filter(({ answer }) => answer);
export const unknownItems = () =>
  asked.items.filter(({ answer, taught, thrown }) => answer?.unknown && !taught && !thrown);
export const outdated = () => answered().filter(({ state }) => state !== model.now?.state);
// What the server was asked about in vain, because it refused or did not answer.
export const unanswered = () => (asked.working ? [] : asked.items.filter(({ answer, problem }) => !answer && !problem));

// The less the likeliest class stands out, the more; what fits nothing most of all.
export const doubt = ({ answer }) => (answer.unknown ? 1 : 0) + 1 - answer.probability;

export function addItem(file, answer = null) {
  const item = {
    id: (numbered += 1),
    file,
    url: URL.createObjectURL(file),
    answer,
    state: model.now.state,
    problem: null,
    effect: null,
    taught: null,
    thrown: false,
  };
  asked.items.push(item);
  if (answer) tell();
  return item;
}

let queue = Promise.resolve();
export function ask(items) {
  const whole = queue.then(() => askNow(items)); // one after another, so that answers come in order
  queue = whole.catch(() => {}); // what goes wrong with one is told by it, and does not stop the next
  return whole;
}

export const askFiles = (files) => ask(files.map((file) => addItem(file)));
export const askAgain = () => ask([...outdated(), ...unanswered()]);

async function askNow(items) {
  asked.working = true;
  asked.problem = null;
  tell();
  const { state } = model.now;
  try {
    await classify(
      items.map(({ file }) => file),
      {
        limits: limits(),
        onAnswer: (i, answer) => {
          const late = state !== model.now.state && items[i].state === model.now.state; // it has a newer answer
          if (!late) Object.assign(items[i], { answer, state, problem: null });
          tell();
        },
        onProblem: (i, problem) => {
          items[i].problem = problem.replace(`${items[i].file.name}: `, '');
          tell();
        },
      },
    );
  } catch (problem) {
    if (problem.status === undefined) throw problem;
    asked.problem = problem.message;
  } finally {
    asked.working = false;
    tell();
  }
}

export function take(item) {
  URL.revokeObjectURL(item.url);
  asked.items.splice(asked.items.indexOf(item), 1);
  tell();
}

export function clearAsked() {
  while (asked.items.length) URL.revokeObjectURL(asked.items.pop().url);
  asked.problem = null;
  lessons.splice(0);
  tell();
}

export function throwAway(items) {
  for (const item of items) item.thrown = true;
  tell();
}

export function takeBack(items) {
  for (const item of items) item.thrown = false;
  tell();
}

const lessons = []; // what was taught here, the newest last: the number of the change, and all pictures as they were before it

watchUndone((undone) => {
  const first = lessons.findIndex(({ number }) => undone.has(number)); // those after it are undone, too
  if (first < 0) return;
  for (const [item, was] of lessons[first].before) Object.assign(item, was);
  lessons.splice(first);
  tell();
});

// Sets answers right: the pictures join the class, and what that changes in the other answers is shown with them.
export async function teachItems(items, name, what = 'correct') {
  const ids = answered().map(({ answer }) => answer.asked);
  const before = asked.items.map((item) => {
    const { answer, state, effect, taught } = item;
    return [item, { answer, state, effect, taught }];
  });
  const batch = `${Date.now()}-${Math.random().toString(36).slice(2)}`;
  const result = await addImages({
    name,
    files: items.map(({ file }) => file),
    limits: limits(),
    what,
    known: 'move',
    batch,
    asked: ids,
  });
  for (const item of items) item.taught = name;
  const after = new Map(result.answers.map((one) => [one.asked, one]));
  const moved = [];
  for (const item of answered()) {
    const effect = after.get(item.answer.asked);
    if (effect) {
      item.effect = effect;
      moved.push(item);
    } else if (ids.length <= 200) item.state = result.state;
  }
  const others = moved.filter((item) => !items.includes(item)).length;
  await changed(result, t('setRight', items.length, name, others));
  if (result.change) lessons.push({ number: result.change.number, before });
  await ask([...new Set([...items, ...moved])].filter(({ answer }) => answer));
  return result;
}
