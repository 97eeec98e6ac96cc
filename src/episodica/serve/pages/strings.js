// The words of the page in the language of the person: the browser's, or the one chosen here.

import { de } from './strings.de.js';
import { en } from './strings.en.js';

export const LANGUAGES = { en, de };
const KEPT = 'episodica-language';

const offered = (wish) => (wish || '').toLowerCase().split('-')[0];
const wishes = [localStorage.getItem(KEPT), ...navigator.languages];
let language = wishes.map(offered).find((wish) => wish in LANGUAGES) || 'en';

export const chosenLanguage = () => language;

export function chooseLanguage(wish) {
  language = wish;
  localStorage.setItem(KEPT, wish);
}

// t('key', values...): a string that needs values is a function of them.
export function t(key, ...values) {
  const said = LANGUAGES[language][key];
  if (said === undefined) throw new Error(`no string called ${key}`);
  return typeof said === 'function' ? said(...values) : said;
}

// Numbers and dates as the person's country writes them, where that goes with the language.
const formats = new Map();
function format(kind, options) {
  const key = JSON.stringify([language, kind.name, options]);
  const local = navigator.languages.find((wish) => offered(wish) === language) || language;
  if (!formats.has(key)) formats.set(key, new kind(local, options));
  return formats.get(key);
}

export const count = (value) => format(Intl.NumberFormat, {}).format(value);

// Whole per cents, as a person says them; nothing is called certain that is not.
export function percent(value) {
  const shown = value > 0.99 && value < 1 ? Math.min(value, 0.999) : value;
  return format(Intl.NumberFormat, {
    style: 'percent',
    maximumFractionDigits: shown > 0.99 && shown < 1 ? 1 : 0,
  }).format(shown);
}

export const clock = (when) =>
  format(Intl.DateTimeFormat, { hour: '2-digit', minute: '2-digit' }).format(new Date(when));
export const day = (when) => format(Intl.DateTimeFormat, { dateStyle: 'full' }).format(new Date(when));
export const list = (names) => format(Intl.ListFormat, { type: 'conjunction' }).format(names);

export function span(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  const [value, unit] =
    whole < 90
      ? [whole, 'second']
      : whole < 5400
        ? [Math.round(whole / 60), 'minute']
        : [Math.round(whole / 3600), 'hour'];
  return format(Intl.NumberFormat, { style: 'unit', unit, unitDisplay: 'long' }).format(value);
}

export function size(bytes) {
  const [value, unit] = bytes < 1e6 ? [bytes / 1e3, 'kilobyte'] : [bytes / 1e6, 'megabyte'];
  return format(Intl.NumberFormat, { style: 'unit', unit, maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
}
