// All pictures in the plane: what looks alike to the model lies close together. Few are shown as pictures, many as dots.

import { thumbnail } from './api.js';
import { colourOf, fitted, numbers } from './chart_parts.js';
import { el, svg } from './dom.js';
import { count, t } from './strings.js';

const AS_PICTURES = 150; // points that are drawn as pictures
const SIDE = 38; // of such a picture
const NAMED = 30; // classes whose names stand on the map

export function imageMap(points) {
  const names = [...new Set(points.map((point) => point.class))].sort((a, b) => a.localeCompare(b));
  const colours = new Map(names.map((name, i) => [name, colourOf(i)]));
  const preview = el('div', { class: 'preview', 'aria-live': 'polite' }, el('p', { class: 'hint' }, t('mapHint')));
  const state = { only: null, at: null, redraw: () => {} };
  const show = (point) => {
    if (point === state.at) return;
    state.at = point;
    state.mark?.();
    if (!point) return;
    const wrong = point.answer && point.answer !== point.class;
    preview.replaceChildren(
      ...[
        point.image ? el('img', { src: thumbnail(point.image, 192), alt: '', width: 112, height: 112 }) : null,
        el(
          'p',
          {},
          el('a', { href: `#/class/${encodeURIComponent(point.class)}` }, point.class),
          wrong ? el('small', {}, t('takenFor', point.answer)) : null,
        ),
      ].filter(Boolean),
    );
  };
  const legend = el(
    'div',
    { class: 'chips', role: 'group', 'aria-label': t('mapOnly') },
    ...names.map((name) => {
      const dot = svg(
        'svg',
        { viewBox: '0 0 10 10', width: 10, height: 10, 'aria-hidden': 'true' },
        svg('circle', { cx: 5, cy: 5, r: 5, fill: colours.get(name) }),
      );
      const chip = el('button', { type: 'button', class: 'chip', 'aria-pressed': 'false' }, dot, name);
      chip.addEventListener('click', () => {
        state.only = state.only === name ? null : name;
        for (const other of legend.children)
          other.setAttribute('aria-pressed', String(other === chip && state.only !== null));
        state.redraw();
      });
      return chip;
    }),
  );
  const holder = fitted((width) => {
    const drawing = draw(points, names, colours, width, state, show);
    state.redraw = drawing.redraw;
    return drawing.node;
  });
  const counts = names.map((name) => {
    const own = points.filter((point) => point.class === name);
    return [name, count(own.length), nearestClass(name, own, points, names)];
  });
  return el(
    'div',
    { class: 'map' },
    holder,
    preview,
    legend,
    numbers([t('class'), t('picturesHead'), t('liesNextTo')], counts),
  );
}

const middle = (points) => ({ x: median(points.map(({ x }) => x)), y: median(points.map(({ y }) => y)) });
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

function nearestClass(name, own, points, names) {
  const here = middle(own);
  const others = names
    .filter((other) => other !== name)
    .map((other) => [other, apart(here, middle(points.filter((point) => point.class === other)))]);
  return others.sort((a, b) => a[1] - b[1])[0]?.[0] ?? '–';
}

function draw(points, names, colours, width, state, show) {
  const height = Math.round(Math.min(Math.max(width * 0.58, 340), 620));
  const margin = 34;
  const place = ({ x, y }) => ({
    x: margin + ((x + 1) / 2) * (width - 2 * margin),
    y: margin + ((1 - y) / 2) * (height - 2 * margin),
  });
  const drawn = points.map((point) => ({ point, ...place(point) }));
  const pictures = points.length <= AS_PICTURES && width > 500;
  const ring = svg('circle', { class: 'ring', r: pictures ? SIDE * 0.78 : 11, visibility: 'hidden' });
  const node = svg('svg', {
    class: 'plane',
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    tabindex: 0,
    role: 'application',
    'aria-label': t('mapAlternative', points.length, names.length),
  });
  const wrong = ({ answer, class: name }) => answer && answer !== name;

  const one = ({ point, x, y }) => {
    const faint = state.only !== null && point.class !== state.only;
    const colour = colours.get(point.class);
    if (pictures && point.image) {
      const box = { x: x - SIDE / 2, y: y - SIDE / 2, width: SIDE, height: SIDE };
      return svg(
        'g',
        { class: faint ? 'faint' : null },
        svg('image', { ...box, href: thumbnail(point.image, 96) }),
        svg('rect', { ...box, rx: 4, stroke: colour, class: wrong(point) ? 'edge missed' : 'edge' }),
      );
    }
    return svg('circle', {
      cx: x,
      cy: y,
      r: pictures ? 8 : 5,
      fill: colour,
      class: [faint ? 'faint' : '', wrong(point) ? 'missed' : ''].join(' '),
    });
  };

  const labels = () =>
    names.length > NAMED
      ? []
      : names.map((name) => {
          const { x, y } = place(middle(points.filter((point) => point.class === name)));
          return svg(
            'text',
            {
              x,
              y: y - (pictures ? SIDE / 2 + 6 : 10),
              class: state.only !== null && state.only !== name ? 'faint' : null,
            },
            name,
          );
        });

  const redraw = () => node.replaceChildren(...drawn.map(one), ...labels(), ring);
  state.mark = () => {
    const at = drawn.find(({ point }) => point === state.at);
    ring.setAttribute('visibility', at ? 'visible' : 'hidden');
    if (at) {
      ring.setAttribute('cx', at.x);
      ring.setAttribute('cy', at.y);
    }
  };
  const near = (x, y) => drawn.reduce((best, one) => (apart(one, { x, y }) < apart(best, { x, y }) ? one : best));
  const point = (event) => {
    const box = node.getBoundingClientRect();
    show(near(event.clientX - box.left, event.clientY - box.top).point);
  };
  node.addEventListener('pointermove', point);
  node.addEventListener('pointerdown', point);
  node.addEventListener('keydown', (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const at = drawn.find((other) => other.point === state.at) ?? near(width / 2, height / 2);
    const ahead = drawn
      .map((other) => ({ other, along: (other.x - at.x) * way[0] + (other.y - at.y) * way[1], far: apart(other, at) }))
      .filter(({ along, far }) => along > 0.5 * far && far > 0.5)
      .sort((a, b) => a.far - b.far);
    show((ahead[0]?.other ?? at).point);
  });
  redraw();
  return { node, redraw };
}
