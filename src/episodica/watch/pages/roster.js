// The list of runs: filtered, in order, with a place for the keyboard.

import { duration, el, label, last, percent, setText, setting, svg } from './dom.js';

export const STATES = ['running', 'failed', 'interrupted', 'waiting', 'finished'];
const byName = new Intl.Collator('en', { numeric: true }).compare;

export class Roster {
  constructor({ list, filter, states, nothing }, { open, choose }) {
    Object.assign(this, { list, filter, states, nothing, open, choose });
    this.rows = new Map();
    this.only = new Set();
    this.at = null; // the run that the keyboard is on
    filter.addEventListener('input', () => this.refresh());
    filter.addEventListener('keydown', (event) => {
      if (event.key === 'ArrowDown') this.focus(this.shown[0], event);
    });
    list.addEventListener('keydown', (event) => this.key(event));
    list.addEventListener('focusin', (event) => this.mark(event.target.closest('li')?.dataset.id));
    this.chips = new Map(STATES.map((state) => [state, this.chip(state)]));
    states.append(...this.chips.values());
  }

  chip(state) {
    return el('button', { class: `chip ${state}`, 'aria-pressed': 'false', onclick: (event) => {
      this.only.has(state) ? this.only.delete(state) : this.only.add(state);
      event.currentTarget.setAttribute('aria-pressed', String(this.only.has(state)));
      this.refresh();
    } });
  }

  update(runs, chosen, opened) {
    Object.assign(this, { runs, chosen, opened });
    for (const [id, row] of this.rows) if (!runs.has(id)) (row.root.remove(), this.rows.delete(id));
    for (const run of runs.values()) {
      if (!this.rows.has(run.id)) this.rows.set(run.id, new Row(run, this));
      this.rows.get(run.id).update(run, chosen.has(run.id), opened === run.id);
    }
    this.refresh();
  }

  matches(run) {
    if (this.only.size && !this.only.has(run.state)) return false;
    const text = [run.name, run.method, run.dataset, run.backbone, run.learner, `seed=${run.seed}`, ...run.apart].join(' ').toLowerCase();
    return this.filter.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  }

  refresh() {
    if (!this.runs) return;
    const order = (a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || byName(a.name, b.name);
    this.shown = [...this.runs.values()].filter((run) => this.matches(run)).sort(order).map((run) => run.id);
    const wanted = this.shown.map((id) => this.rows.get(id).root);
    if (wanted.length !== this.list.children.length || wanted.some((row, i) => this.list.children[i] !== row)) {
      const focused = this.list.contains(document.activeElement) ? document.activeElement : null;
      this.list.replaceChildren(...wanted);
      if (focused?.isConnected) focused.focus({ preventScroll: true });
    }
    if (!this.shown.includes(this.at)) this.mark(this.shown[0]);
    for (const [state, chip] of this.chips) {
      const count = [...this.runs.values()].filter((run) => run.state === state).length;
      setText(chip, `${count} ${state}`);
      chip.hidden = !count && !this.only.has(state);
    }
    this.nothing.hidden = this.shown.length > 0;
    setText(this.nothing, this.runs.size ? 'No run matches.' : 'No runs yet. This page waits: the first run that is written here appears by itself.');
  }

  mark(id) {
    if (this.rows.has(this.at)) this.rows.get(this.at).root.tabIndex = -1;
    this.at = id;
    if (this.rows.has(id)) this.rows.get(id).root.tabIndex = 0;
  }

  focus(id, event) {
    if (!id) return;
    event?.preventDefault();
    this.rows.get(id).root.focus();
  }

  key(event) {
    const here = this.shown.indexOf(this.at);
    const page = Math.max(Math.floor(this.list.clientHeight / 64) - 1, 1);
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (move !== undefined) this.focus(this.shown[Math.min(Math.max(here + move, 0), this.shown.length - 1)], event);
    else if (event.key === ' ') (event.preventDefault(), this.choose(this.at));
    else if (event.key === 'Enter') (event.preventDefault(), this.open(this.at));
  }
}

class Row {
  constructor(run, roster) {
    this.check = el('span', { class: 'check', 'aria-hidden': 'true', onclick: (event) => {
      event.stopPropagation();
      roster.choose(run.id);
    } });
    this.title = el('b');
    this.place = el('small');
    this.score = el('span', { class: 'score' });
    this.spark = svg('svg', { class: 'spark', viewBox: '0 0 64 22', 'aria-hidden': 'true' });
    this.state = el('span', { class: 'state' });
    this.bar = el('progress', { max: '1', 'aria-hidden': 'true' });
    this.root = el('li', { role: 'option', tabindex: '-1', 'data-id': run.id, onclick: () => roster.open(run.id) },
      this.check, el('span', { class: 'what' }, this.title, this.place), this.spark, this.score, this.state, this.bar);
  }

  update(run, chosen, opened) {
    this.root.setAttribute('aria-selected', String(chosen));
    opened ? this.root.setAttribute('aria-current', 'true') : this.root.removeAttribute('aria-current');
    if (this.run === run) return;
    this.run = run;
    this.root.dataset.state = run.state;
    this.root.title = run.name;
    setText(this.title, label(run));
    setText(this.place, `${run.name} · ${setting(run)}`);
    const [unseen, seen] = [last(run.curves.meta_test), last(run.curves.seen)];
    const mark = run.warning ? '⚠ ' : '';
    setText(this.score, unseen ? `${mark}${percent(unseen[0])} %` : mark);
    this.score.classList.toggle('doubtful', Boolean(run.warning));
    this.score.title = run.warning ?? (unseen ? `unseen classes ${percent(unseen[0])} %, seen classes ${percent(seen[0])} %` : '');
    setText(this.state, whereabouts(run));
    this.bar.value = run.done ?? 0;
    this.bar.hidden = run.state === 'finished' || run.done === null;
    this.draw(run.curves.meta_test.map(([mean]) => mean));
  }

  draw(values) {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const x = (i) => 2 + (60 * i) / Math.max(values.length - 1, 1);
    const y = (v) => 19 - (16 * (v - low)) / Math.max(high - low, 0.02);
    const points = values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(' ');
    this.spark.replaceChildren(values.length > 1 ? svg('polyline', { points }) : '');
  }
}

export function whereabouts(run) {
  const place = run.sessions ? `task ${run.session}/${run.sessions}` : '';
  if (run.state === 'running' && !run.session) return 'running · preparing';
  if (run.state === 'running') return [`${place}`, run.left === null ? run.phase : `${duration(run.left)} left`].join(' · ');
  if (run.state === 'waiting' || run.state === 'finished') return run.state;
  return `${run.state} · ${place}`;
}
