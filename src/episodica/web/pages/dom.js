// Elements and words. Text from run folders only ever becomes text: nothing here parses HTML.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const el = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);
export const svg = (tag, properties = {}, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export const percent = (value) => (100 * value).toFixed(1);
export const plusMinus = ([mean, width]) => `${percent(mean)} ± ${percent(width)}`;
export const last = (list) => list[list.length - 1];

export function number(value) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e5)) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s < 600 ? `${s % 60} s` : ''}`.trim();
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export const ago = (since) => (since ? `${duration(Math.max(Date.now() / 1000 - since, 0))} ago` : '–');

export function setting(run) {
  const scaled = run.scale === '1.0' || run.scale === '?' ? '' : `, schedule scaled by ${run.scale}`;
  return `${run.dataset} ${run.way}-way ${run.shots}-shot${scaled}`;
}

// What a person calls a run: its method, and what sets it apart from its like in the same folder.
export function label(run) {
  const apart = run.apart.map((text) => text.replace(/^[a-z_]+\.(?=[a-z_]+=)/, ''));
  return [run.method || last(run.name.split('/')), ...apart].join(' ');
}
