// How good the model is: a number, what is mixed up with what, what more pictures would bring, and all pictures on a map.

import { readMap, readQuality, thumbnail } from './api.js';
import { accuracyCurve } from './curve.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { imageMap } from './map.js';
import { confusionMatrix } from './matrix.js';
import { note } from './messages.js';
import { can, knownClass, model } from './model.js';
import { leading, section } from './section.js';
import { count, percent, t } from './strings.js';

const SHOWN = 6; // mixed-up pairs, and classes that need more

export function qualityView() {
  const body = el('div', { class: 'stack' });
  const node = section(t('view_quality'), leading(t('qualityLead')), body);
  let shown = null;

  async function update() {
    const { state, classes } = model.now;
    if (state === shown) return;
    shown = state;
    if (!can('quality')) {
      body.replaceChildren(note('plain', model.now.cannot.quality || ''));
      return;
    }
    if (classes.length < 2) {
      body.replaceChildren(tooFew());
      return;
    }
    if (!body.children.length)
      body.replaceChildren(
        el('div', { class: 'bar waiting', role: 'progressbar', 'aria-label': t('measuring') }, el('span', {})),
      );
    try {
      draw(await readQuality());
      if (can('map')) body.append(part(t('mapTitle'), t('mapText'), imageMap((await readMap()).points)));
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      body.replaceChildren(note('error', problem.message));
    }
  }

  function draw({ notice, accuracy, classes, confusion, mixed_up: mixed, by_images: curve, wanting }) {
    body.replaceChildren(
      ...[
        accuracy ? score(accuracy) : null,
        notice ? note('plain', notice) : null,
        el(
          'div',
          { class: 'halves' },
          part(t('wantingTitle'), wanting.length ? t('wantingText') : t('wantingNone'), wantingList(wanting)),
          part(t('mixedTitle'), mixed.length ? t('mixedText') : t('mixedNone'), mixedList(mixed)),
        ),
        el(
          'div',
          { class: classes.length > 9 ? 'stack' : 'halves' },
          part(t('matrixTitle'), t('matrixText'), confusionMatrix(classes, confusion)),
          curve.length > 1 ? part(t('curveTitle'), t('curveText'), accuracyCurve(curve)) : null,
        ),
      ].filter(Boolean),
    );
  }

  return { node, update, paste: () => false, leave: () => {} };
}

const part = (title, text, inside) =>
  el('div', { class: 'card' }, el('h2', {}, title), el('p', { class: 'hint' }, text), inside);

const tooFew = () =>
  el(
    'div',
    { class: 'card welcome' },
    icon('quality'),
    el('h2', {}, t('twoClasses')),
    el('p', {}, t('twoClassesText')),
    el('a', { href: '#/teach', class: 'button main' }, t('toTeach')),
  );

function score({ value, low, high, images }) {
  const range = el('span', { class: 'range' });
  range.style.left = `${100 * low}%`;
  range.style.width = `${100 * (high - low)}%`;
  const point = el('span', { class: 'point' });
  point.style.left = `${100 * value}%`;
  return el(
    'div',
    { class: 'card score-card' },
    el('p', { class: 'big number' }, percent(value)),
    el(
      'div',
      { class: 'grow' },
      el('p', {}, t('scoreText', count(images), percent(low), percent(high))),
      el('div', { class: 'interval', 'aria-hidden': 'true' }, range, point),
      el(
        'div',
        { class: 'row apart', 'aria-hidden': 'true' },
        el('small', {}, percent(0)),
        el('small', {}, percent(1)),
      ),
    ),
  );
}

const face = (name) => {
  const example = knownClass(name)?.example;
  return example
    ? el('img', { src: thumbnail(example, 96), alt: '', width: 48, height: 48, loading: 'lazy' })
    : el('span', { class: 'blank' });
};

function wantingList(wanting) {
  return el(
    'ul',
    { class: 'lines' },
    ...wanting
      .slice(0, SHOWN)
      .map(({ class: name, images, accuracy }) =>
        el(
          'li',
          {},
          face(name),
          el(
            'span',
            { class: 'grow' },
            el('b', { class: 'called' }, name),
            el(
              'small',
              {},
              [t('pictures', images), accuracy === null ? null : t('rightShare', percent(accuracy))]
                .filter(Boolean)
                .join(' · '),
            ),
          ),
          el(
            'a',
            { class: 'button', href: `#/class/${encodeURIComponent(name)}`, 'aria-label': t('addPicturesTo', name) },
            icon('plus'),
            t('addPictures'),
          ),
        ),
      ),
  );
}

function mixedList(mixed) {
  return el(
    'ul',
    { class: 'lines' },
    ...mixed.slice(0, SHOWN).map(({ classes: [one, other], images, share }) => {
      const filled = el('span', {});
      filled.style.width = `${100 * share}%`;
      return el(
        'li',
        {},
        el('span', { class: 'pair' }, face(one), face(other)),
        el(
          'span',
          { class: 'grow' },
          el('b', {}, t('pair', one, other)),
          el('small', {}, t('mixedShare', images, percent(share))),
          el('span', { class: 'bar doubtful', 'aria-hidden': 'true' }, filled),
        ),
      );
    }),
  );
}
