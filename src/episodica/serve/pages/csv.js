// Answers as a table for spreadsheets, with the columns of `episodica classify --csv`.

import { el } from './dom.js';

const FORMULA = /^\s*[=+\-@\t\r\n]/; // what a spreadsheet would run: an apostrophe says that it is text

const cell = (value) => {
  const text = typeof value === 'string' && FORMULA.test(value) ? `'${value}` : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function asCsv(items) {
  const rows = items.map(({ file, answer, problem }) => [
    file.name,
    answer?.class ?? '',
    answer?.probability,
    answer ? (answer.unknown ? 'True' : 'False') : '',
    problem ?? '',
    answer?.strangeness,
    answer?.limit,
  ]);
  return [['image', 'class', 'probability', 'unknown', 'error', 'strangeness', 'limit'], ...rows]
    .map((row) => `${row.map(cell).join(',')}\r\n`)
    .join('');
}

export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = el('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
