// An answer, shown: what it is, how sure that is, and the kept picture that is most like it.

import { el } from './dom.js';
import { thumbnail } from './api.js';
import { icon } from './icons.js';
import { percent, t } from './strings.js';

const BARS = 5; // classes shown of an answer

export const verdictWord = (answer) => (answer.unknown ? t('unknown') : answer.class);

export function verdict(answer) {
  const below = answer.unknown
    ? t('mostLike', answer.class, percent(answer.probability))
    : t('surely', percent(answer.probability));
  return el(
    'div',
    { class: answer.unknown ? 'verdict unknown' : 'verdict' },
    el('p', {}, verdictWord(answer)),
    el('small', {}, below),
  );
}

// A bar for each of the likeliest classes; pressing one says that it is this class.
export function bars(answer, onPick) {
  const ranked = Object.entries(answer.scores).sort((a, b) => b[1] - a[1]);
  const items = ranked.slice(0, BARS).map(([name, probability]) => {
    const filled = el('span', {});
    filled.style.width = `${100 * probability}%`;
    const inside = [
      el('span', { class: 'called' }, name),
      el('span', { class: 'bar', 'aria-hidden': 'true' }, filled),
      el('span', { class: 'number' }, percent(probability)),
    ];
    if (!onPick) return el('li', {}, el('span', { class: 'score' }, ...inside));
    return el(
      'li',
      {},
      el(
        'button',
        {
          type: 'button',
          class: 'score quiet',
          title: t('itIs', name),
          onclick: (event) => onPick(name, event.currentTarget),
        },
        ...inside,
        el('span', { class: 'hidden' }, t('itIs', name)),
        icon('check'),
      ),
    );
  });
  const rest = ranked.length > BARS ? [el('li', { class: 'hint' }, t('andMoreClasses', ranked.length - BARS))] : [];
  return el('ul', { class: 'bars', 'aria-label': t('probabilities') }, ...items, ...rest);
}

export function nearest(answer) {
  if (!answer.nearest || answer.nearest.index !== null) return null;
  return el(
    'figure',
    { class: 'nearest' },
    el('img', { src: thumbnail(answer.nearest.image, 192), alt: t('nearestOf', answer.class), width: 84, height: 84 }),
    el('figcaption', {}, t('nearestOf', answer.class)),
  );
}

// What a change of the model has done to an answer.
export function effectOf({ effect, answer, taught }) {
  if (!effect || !answer) return null;
  const { before } = effect;
  if (before.class === answer.class && before.unknown === answer.unknown && !taught) return null;
  const was = t('asSaid', verdictWord(before), percent(before.probability));
  const is = t('asSaid', verdictWord(answer), percent(answer.probability));
  return el(
    'p',
    { class: 'effect' },
    el('span', {}, was),
    el('span', { 'aria-label': t('became') }, '→'),
    el('b', {}, is),
  );
}
