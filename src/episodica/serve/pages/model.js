// The model as the server last described it. Everything on the page follows from it; others may change it at any time.

import * as api from './api.js';
import { t } from './strings.js';
import { say, toast } from './messages.js';
import { changeSentence, whoSaid } from './changes.js';

const EVERY = 2000; // milliseconds between two looks

export const model = { now: null, lost: false };
const watchers = new Set();
const undoneWatchers = new Set();
let ours = new Set(); // numbers of changes that were made here
let newest = 0; // number of the last change that this page knows of

export const watch = (watcher) => watchers.add(watcher);
export const watchUndone = (watcher) => undoneWatchers.add(watcher); // gets the numbers of all changes that were undone
export const limits = () => model.now.limits;
export const can = (what) => Boolean(model.now?.can[what]);
export const classNames = () => (model.now ? model.now.classes.map(({ name }) => name) : []);
export const knownClass = (name) => model.now?.classes.find((one) => one.name === name);

const tellAll = () => watchers.forEach((watcher) => watcher());

export async function refresh() {
  const before = model.now;
  let read;
  try {
    read = await api.readModel(before?.version);
  } catch (problem) {
    if (!model.lost) {
      model.lost = true;
      model.problem = problem.message;
      tellAll();
    }
    return;
  }
  const back = model.lost;
  model.lost = false;
  if (read) model.now = read;
  if (read || back) tellAll();
  if (read && before && read.state !== before.state) await followHistory();
}

async function followHistory() {
  const { changes } = await api.readHistory();
  const undone = new Set(changes.filter((change) => change.undone).map(({ number }) => number));
  undoneWatchers.forEach((watcher) => watcher(undone));
  const fresh = changes.filter(({ number }) => number > newest && !ours.has(number));
  newest = Math.max(newest, ...changes.map(({ number }) => number));
  if (fresh.length)
    toast(
      fresh.length === 1
        ? t('otherChange', whoSaid(fresh[0].who), changeSentence(fresh[0]))
        : t('otherChanges', fresh.length),
    );
}

export async function start() {
  await refresh();
  if (model.now) newest = Math.max(0, ...(await api.readHistory()).changes.map(({ number }) => number));
  setInterval(() => {
    if (!document.hidden) refresh();
  }, EVERY);
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) refresh();
  });
}

// What a change of ours has answered: the page follows, and the change can be undone where it is told.
export async function changed(answer, words = null) {
  if (answer.change) {
    ours.add(answer.change.number);
    newest = Math.max(newest, answer.change.number);
  }
  await refresh();
  if (answer.change && model.now.undo === answer.change.number) {
    toast(words || changeSentence(answer.change), { label: t('undo'), act: () => undo(answer.change.number) });
  } else if (words || answer.change) {
    toast([words || changeSentence(answer.change), answer.notice].filter(Boolean).join(' '));
  }
  return answer;
}

// Undoes this change, or the last one; refused where somebody changed the model since.
export async function undo(number = model.now?.undo) {
  if (!number) {
    say(t('nothingToUndo'));
    return;
  }
  try {
    await changed(await api.undo(number));
  } catch (problem) {
    await refresh();
    toast(problem.message, { kind: 'error' });
  }
}
