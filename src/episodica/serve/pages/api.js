// What the server can do, a function for each request. Every refusal is a Refused with a sentence to show.

import { t } from './strings.js';
import { myName } from './person.js';

export class Refused extends Error {
  constructor({ detail, field = null, index = null }, status) {
    super(detail);
    Object.assign(this, { field, index, status });
  }
}

async function send(path, { headers = {}, ...how } = {}) {
  const who = myName();
  let answer;
  try {
    answer = await fetch(path, {
      ...how,
      headers: { ...headers, ...(who ? { 'X-Name': encodeURIComponent(who) } : {}) },
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused({ detail: t('noServer') }, 0);
  }
  if (answer.ok || answer.status === 304) return answer;
  const json = (answer.headers.get('content-type') || '').includes('json');
  throw new Refused(json ? await answer.json() : { detail: await answer.text() }, answer.status);
}

const get = async (path) => (await send(path)).json();
const post = async (path, body) =>
  (
    await send(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  ).json();

// The model, or null where it still has this version.
export async function readModel(version) {
  const answer = await send('/model', {
    cache: 'no-store',
    headers: version ? { 'If-None-Match': `"${version}"` } : {},
  });
  return answer.status === 304 ? null : answer.json();
}

export const readHistory = () => get('/history');
export const readQuality = () => get('/quality');
export const readMap = () => get('/map');
export const readImages = (name) => get(`/images?class=${encodeURIComponent(name)}`);
export const undo = (number) => post('/history/undo', { number });
export const removeImages = (digests) => post('/images/remove', { digests, asked: [] });
export const moveImages = (digests, name) => post('/images/move', { digests, class: name, asked: [] });
export const rename = (name, to, merge) => post('/classes/rename', { name, to, merge, asked: [] });
export const groups = (asked) => post('/groups', { asked });
export const startJob = (what) => post('/job', { what });
export const stopJob = async () => (await send('/job', { method: 'DELETE' })).json();
export const forget = async (name) =>
  (await send(`/classes?name=${encodeURIComponent(name)}`, { method: 'DELETE' })).json();
export const importModel = async (file) =>
  (await send('/import', { method: 'POST', headers: { 'content-type': 'application/zip' }, body: file })).json();

export const thumbnail = (address, side = 192) => `${address}?side=${side}`;

// Images in parts that a request may have.
export function parts(files, limits, most) {
  const found = [];
  let room = 0;
  for (const file of files) {
    if (!found.length || found.at(-1).length >= most || room < file.size) {
      found.push([]);
      room = 0.9 * limits.body_bytes;
    }
    found.at(-1).push(file);
    room -= file.size;
  }
  return found;
}

// Adds files to a class, part by part: one change for the history. The answers of all parts as one.
export async function addImages({
  name,
  files,
  limits,
  batch,
  what = 'add',
  known = 'leave',
  asked = [],
  onProgress = () => {},
}) {
  let whole = null;
  for (const part of parts(files, limits, Math.min(limits.images, 40))) {
    const form = new FormData();
    const fields = { class: name, what, if_known: known, ...(batch ? { batch } : {}) };
    for (const [key, value] of Object.entries(fields)) form.append(key, value);
    for (const id of asked.slice(0, 200)) form.append('asked', id);
    for (const file of part) form.append('images', file, file.name);
    const changed = await (await send('/images', { method: 'POST', body: form })).json();
    whole = whole ? joined(whole, changed) : changed;
    onProgress(whole.files.length);
  }
  return whole;
}

// A class for a model whose network is trained: new, and all of its images or none.
export async function remember({ name, files, onProgress = () => {} }) {
  const form = new FormData();
  form.append('name', name);
  for (const file of files) form.append('images', file, file.name);
  const changed = await (await send('/classes', { method: 'POST', body: form })).json();
  onProgress(files.length);
  return { ...changed, files: files.map((file) => ({ image: file.name, status: 'taken' })) };
}

function joined(first, then) {
  return {
    ...then,
    change: then.change || first.change,
    accuracy: { before: first.accuracy.before, after: then.accuracy.after },
    answers: [...new Map([...first.answers, ...then.answers].map((one) => [one.asked, one])).values()],
    files: [...first.files, ...then.files],
  };
}

// Asks about files; `onAnswer(index, answer)` or `onProblem(index, sentence)` for each. A refused one does not stop the others.
export async function classify(files, { limits, signal, atOnce = 12, onAnswer, onProblem }) {
  let start = 0;
  for (const part of parts(files, limits, Math.min(limits.images, atOnce))) {
    let left = part.map((file, i) => ({ file, index: start + i }));
    start += part.length;
    while (left.length) {
      const form = new FormData();
      for (const { file } of left) form.append('images', file, file.name);
      try {
        const { answers } = await (await send('/classify', { method: 'POST', body: form, signal })).json();
        answers.forEach((answer, i) => onAnswer(left[i].index, answer));
        left = [];
      } catch (problem) {
        if (!(problem.field === 'images' && problem.index !== null && left[problem.index])) throw problem;
        onProblem(left[problem.index].index, problem.message);
        left.splice(problem.index, 1);
      }
    }
  }
}
