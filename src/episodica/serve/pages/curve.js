// How many answers are right where classes are known from one picture, two, and so on, with the interval around it.

import { fitted, numbers } from './chart_parts.js';
import { el, svg } from './dom.js';
import { count, percent, t } from './strings.js';

const HEIGHT = 260;
const EDGE = { left: 52, right: 18, top: 14, bottom: 44 };

export function accuracyCurve(points) {
  const last = points.at(-1);
  const words = t(
    'curveAlternative',
    percent(points[0].accuracy),
    points[0].images,
    percent(last.accuracy),
    last.images,
  );
  const rows = points.map(({ images, accuracy, low, high, asked }) => [
    count(images),
    percent(accuracy),
    `${percent(low)} – ${percent(high)}`,
    count(asked),
  ]);
  return el(
    'div',
    {},
    fitted((width) => drawn(points, width, words)),
    numbers([t('picturesEach'), t('right'), t('interval'), t('askedAbout')], rows),
  );
}

function drawn(points, width, words) {
  const floor = Math.max(0, Math.floor((Math.min(...points.map(({ low }) => low)) - 0.02) * 10) / 10);
  const most = Math.log(points.at(-1).images);
  const least = Math.log(points[0].images);
  const x = ({ images }) =>
    EDGE.left + ((Math.log(images) - least) / (most - least || 1)) * (width - EDGE.left - EDGE.right);
  const y = (value) => EDGE.top + ((1 - value) / (1 - floor)) * (HEIGHT - EDGE.top - EDGE.bottom);
  const path = (list, value) =>
    list.map((point, i) => `${i ? 'L' : 'M'}${x(point).toFixed(1)} ${y(value(point)).toFixed(1)}`).join('');
  const steps = [0, 0.25, 0.5, 0.75, 1].map((part) => floor + part * (1 - floor));
  const band = `${path(points, ({ high }) => high)}${path([...points].reverse(), ({ low }) => low).replace('M', 'L')}Z`;
  return svg(
    'svg',
    { class: 'curve', viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: 'img', 'aria-label': words },
    ...steps.flatMap((value) => [
      svg('line', { class: 'guide', x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }),
      svg('text', { x: EDGE.left - 10, y: y(value) + 4, 'text-anchor': 'end' }, percent(value)),
    ]),
    svg('path', { class: 'band', d: band }),
    svg('path', { class: 'line', d: path(points, ({ accuracy }) => accuracy) }),
    ...points.flatMap((point) => [
      svg(
        'circle',
        { cx: x(point), cy: y(point.accuracy), r: 5 },
        svg('title', {}, t('curvePoint', point.images, percent(point.accuracy))),
      ),
      svg('text', { x: x(point), y: HEIGHT - EDGE.bottom + 20, 'text-anchor': 'middle' }, count(point.images)),
    ]),
    svg('text', { x: (EDGE.left + width - EDGE.right) / 2, y: HEIGHT - 4, 'text-anchor': 'middle' }, t('picturesEach')),
  );
}
