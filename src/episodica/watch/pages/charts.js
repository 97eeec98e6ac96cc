// Line charts in SVG: axes, lines with bands, and a cursor for mouse, finger and arrow keys.

import { el, number, percent, setText, svg } from './dom.js';

const EDGE = { left: 44, right: 12, top: 10, bottom: 34 };
const HEIGHT = 230;
export const COLOURS = 8;

function niceStep(span, most) {
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

function ticksBetween(low, high, most) {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, most);
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9); tick * step <= high + step * 1e-9; tick += 1) ticks.push(tick * step);
  return ticks;
}

function powersBetween(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const factor of high / low < 60 ? [1, 2, 5] : [1]) {
      const tick = factor * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}

// A series is {name, colour, stroke, flat, points: [[x, y, half width of its interval]]}; a flat one is a level.
export class Chart {
  constructor({ title, xName, share = false, whole = false }) {
    Object.assign(this, { title, xName, share, whole, series: [], marks: [], cursor: null, far: 1 });
    this.picture = svg('svg', {
      role: 'img', tabindex: '0', height: HEIGHT,
      onpointermove: (event) => this.point(event), onpointerdown: (event) => this.point(event),
      onpointerleave: () => this.moveTo(null), onblur: () => this.moveTo(null), onkeydown: (event) => this.key(event),
    });
    this.reading = el('div', { class: 'reading', role: 'status', hidden: true });
    this.unit = el('small');
    this.root = el('figure', { class: 'chart' }, el('figcaption', {}, title, this.unit), this.picture, this.reading);
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  update(series, { far = 1, marks = [] } = {}) {
    Object.assign(this, { series: series.filter((one) => one.points.length), far, marks });
    this.draw();
  }

  show(value) {
    return this.share ? percent(value) : number(value);
  }

  draw() {
    const width = this.root.clientWidth;
    if (!width) return;
    this.picture.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    this.picture.setAttribute('aria-label', this.inWords());
    if (!this.series.length) {
      const nothing = svg('text', { x: width / 2, y: HEIGHT / 2, class: 'nothing' }, 'nothing measured yet');
      this.picture.replaceChildren(nothing);
      return;
    }
    this.scale(width);
    setText(this.unit, this.share ? 'in %' : this.log ? 'on a log scale' : '');
    const { left, right, top, bottom } = EDGE;
    this.picture.replaceChildren(
      ...this.grid(width),
      ...this.marks.slice(1).filter((at) => at <= this.x1).map((at) => (
        svg('line', { class: 'mark', x1: this.x(at), x2: this.x(at), y1: top, y2: HEIGHT - bottom })
      )),
      ...(this.series.length <= 4 ? this.series.map((one) => this.band(one)) : []),
      ...this.series.map((one) => this.line(one, left, width - right)),
      ...this.series.flatMap((one) => this.dots(one)),
      this.needle = svg('line', { class: 'needle', y1: top, y2: HEIGHT - bottom, visibility: 'hidden' }),
    );
    this.moveTo(this.cursor);
  }

  scale(width) {
    const all = this.series.flatMap((one) => one.points);
    const heights = all.flatMap(([, y, half = 0]) => [y - half, y + half]);
    const positive = all.map(([, y]) => y).filter((y) => y > 0);
    let [low, high] = [Math.min(...heights), Math.max(...heights)];
    this.log = !this.share && positive.length > 0 && high / Math.min(...positive) > 20;
    if (this.log) low = Math.max(Math.min(...positive), high / 1e5);
    const room = this.log ? 0 : Math.max((high - low) * 0.06, this.share ? 0.01 : Math.abs(high) * 0.02, 1e-9);
    [low, high] = [low - room, high + room];
    if (this.share) [low, high] = [Math.max(low, 0), Math.min(high, 1)];
    this.x0 = this.whole ? 1 : 0;
    this.x1 = Math.max(this.far, ...all.map(([x]) => x), this.x0 + 1);
    this.x = (at) => EDGE.left + ((at - this.x0) / (this.x1 - this.x0)) * (width - EDGE.left - EDGE.right);
    const on = this.log ? (y) => Math.log10(Math.max(y, low)) : (y) => y;
    this.y = (value) => EDGE.top + ((on(high) - on(value)) / (on(high) - on(low))) * (HEIGHT - EDGE.top - EDGE.bottom);
    this.yTicks = this.log ? powersBetween(low, high) : ticksBetween(low, high, 5);
    const xTicks = ticksBetween(this.x0, this.x1, Math.max(Math.floor(width / 70), 2));
    this.xTicks = this.whole ? [...new Set([1, ...xTicks.map(Math.round)])].filter((t) => t === 1 || t > 1.5) : xTicks;
  }

  grid(width) {
    const { left, right, bottom } = EDGE;
    return [
      ...this.yTicks.flatMap((tick) => [
        svg('line', { class: 'rule', x1: left, x2: width - right, y1: this.y(tick), y2: this.y(tick) }),
        svg('text', { class: 'tick y', x: left - 6, y: this.y(tick) + 4 }, this.share ? String(Math.round(1000 * tick) / 10) : number(tick)),
      ]),
      ...this.xTicks.map((tick) => (
        svg('text', { class: 'tick x', x: this.x(tick), y: HEIGHT - bottom + 15 }, tick >= 1e4 ? `${tick / 1e3}k` : String(tick))
      )),
      svg('text', { class: 'axis', x: width - right, y: HEIGHT - 4 }, this.xName),
    ];
  }

  band({ colour, flat, points }) {
    const known = points.filter(([, , half]) => half > 0);
    const edge = (sign) => known.map(([x, y, half]) => [this.x(x), this.y(y + sign * half)]);
    const outline = flat || known.length < 2 ? [] : [...edge(1), ...edge(-1).reverse()];
    return svg('polygon', { class: `band c${colour}`, points: outline.map((at) => at.join()).join(' ') });
  }

  line({ colour, stroke = '', flat, points }, left, right) {
    const level = points[points.length - 1][1];
    const kind = `line c${colour} ${stroke}${flat ? ' flat' : ''}`;
    if (flat) return svg('path', { class: kind, d: `M${left} ${this.y(level)}H${right}` });
    const parts = points.map(([x, y], i) => `${i && !this.crosses(points[i - 1][0], x) ? 'L' : 'M'}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`);
    return svg('path', { class: kind, d: parts.join('') });
  }

  // A term that is there in a part of each session only is not drawn through the rest.
  crosses(from, to) {
    return this.marks.some((mark) => from <= mark && mark < to);
  }

  dots({ colour, flat, points }) {
    if (flat || !this.whole || (points.length > 40 && points.length > 1)) return [];
    return points.map(([x, y]) => svg('circle', { class: `dot c${colour}`, cx: this.x(x), cy: this.y(y), r: 2.6 }));
  }

  places() {
    return [...new Set(this.series.filter((one) => !one.flat).flatMap((one) => one.points.map(([x]) => x)))].sort((a, b) => a - b);
  }

  point(event) {
    if (!this.x || !this.series.length) return;
    const box = this.picture.getBoundingClientRect();
    const at = event.clientX - box.left;
    const places = this.places();
    if (places.length) this.moveTo(places.reduce((a, b) => (Math.abs(this.x(b) - at) < Math.abs(this.x(a) - at) ? b : a)));
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === 'Escape' && this.cursor !== null) {
      event.stopPropagation();
      this.moveTo(null);
    }
    const places = this.places();
    if (step === undefined || !places.length) return;
    event.preventDefault();
    const now = this.cursor === null ? (step > 0 ? -1 : places.length) : places.findIndex((x) => x >= this.cursor);
    this.moveTo(places[Math.min(Math.max(now + step, 0), places.length - 1)]);
  }

  moveTo(at) {
    this.cursor = at;
    this.reading.hidden = at === null || !this.series.length;
    if (!this.needle) return;
    this.needle.setAttribute('visibility', this.reading.hidden ? 'hidden' : 'visible');
    if (this.reading.hidden) return;
    const x = this.x(at);
    this.needle.setAttribute('x1', x);
    this.needle.setAttribute('x2', x);
    this.reading.replaceChildren(
      el('b', {}, `${this.xName} ${at}`),
      ...this.valuesAt(at).slice(0, 12).map(([one, value]) => (
        el('span', {}, el('i', { class: `swatch c${one.colour} ${one.stroke ?? ''}` }), el('em', {}, one.name), el('b', {}, value))
      )),
    );
    const right = x > this.root.clientWidth / 2;
    this.reading.style.left = right ? 'auto' : `${x + 12}px`;
    this.reading.style.right = right ? `${this.root.clientWidth - x + 12}px` : 'auto';
  }

  valuesAt(at) {
    return this.series.flatMap((one) => {
      const found = one.flat ? one.points[one.points.length - 1] : this.nearest(one, at);
      if (!found) return [];
      const [, y, half] = found;
      return [[one, half && this.series.length <= 4 ? `${this.show(y)} ± ${this.show(half)}` : this.show(y)]];
    });
  }

  nearest({ points }, at) {
    if (this.whole) return points.find(([x]) => x === at);
    return points.find(([x]) => x >= at);
  }

  inWords() {
    const words = this.series.slice(0, 12).map(({ name, points }) => {
      const [x, y] = points[points.length - 1];
      return `${name}: ${this.show(y)} at ${this.xName} ${x}`;
    });
    return `${this.title}. ${words.join('; ') || 'Nothing measured yet'}. Left and right arrow keys read the values.`;
  }
}
