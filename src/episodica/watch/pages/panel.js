// What is shown beside the list: one run in depth, or several side by side.

import { Chart, COLOURS } from './charts.js';
import { ago, duration, el, label, last, number, percent, plusMinus, setText, setting } from './dom.js';

const METRICS = { meta_test: 'unseen classes (meta-test)', seen: 'seen classes (mean of tasks)' };
export const MOST_COMPARED = 16;

const curve = ({ curves }, metric) => curves.session.map((session, i) => [session, ...curves[metric][i]]);
const accuracyChart = (title) => new Chart({ title, xName: 'session', share: true, whole: true });
const lossChart = (title) => new Chart({ title, xName: 'step' });

function table(head, rows, caption) {
  return el('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': caption }, el('table', {},
    el('caption', { class: 'hidden' }, caption),
    el('thead', {}, el('tr', {}, ...head.map((text) => el('th', { scope: 'col' }, text)))),
    el('tbody', {}, ...rows.map(([first, ...cells]) => (
      el('tr', {}, el('th', { scope: 'row' }, first), ...cells.map((cell) => el('td', {}, cell)))
    )))));
}

// A part that is built anew only when what it shows has changed, so that selections and scroll places stay.
class Part {
  constructor(title, build, open = true) {
    Object.assign(this, { build, shown: null });
    this.body = el('div');
    this.root = el('details', { class: 'part', open }, el('summary', {}, title), this.body);
  }

  update(value) {
    const now = JSON.stringify(value);
    if (now === this.shown) return;
    this.shown = now;
    const old = this.body.firstElementChild;
    const [place, atEnd] = [old?.scrollTop ?? 0, !old || old.scrollTop + old.clientHeight >= old.scrollHeight - 4];
    this.body.replaceChildren(this.build(value));
    const fresh = this.body.firstElementChild;
    if (fresh?.matches('pre')) fresh.scrollTop = atEnd ? fresh.scrollHeight : place;
  }
}

// What is wrong with the accuracies of these runs: above everything else, and read out.
class Warning {
  constructor() {
    this.root = el('p', { class: 'warning', role: 'alert', hidden: 'true' });
  }

  update(runs) {
    const found = [...new Set(runs.map((run) => run.warning).filter(Boolean))];
    this.root.hidden = !found.length;
    setText(this.root, found.length ? `⚠ ${found.join('; ')}` : '');
  }
}

const back = (leave) => el('button', { class: 'back', onclick: leave }, '← Runs');

export class RunPanel {
  constructor(leave) {
    this.title = el('h2');
    this.badge = el('span', { class: 'badge' });
    this.warning = new Warning();
    this.place = el('p', { class: 'place' });
    this.bar = el('progress', { max: '1', 'aria-label': 'Share of all steps that is done' });
    this.facts = el('dl', { class: 'facts' });
    this.charts = { accuracy: accuracyChart('Accuracy by session'), loss: lossChart('Loss terms by step') };
    this.legends = { accuracy: el('ul', { class: 'legend' }), loss: el('ul', { class: 'legend' }) };
    this.error = new Part('Error', (text) => el('pre', { tabindex: '0', class: 'error' }, text));
    this.notices = new Part('Notices', (list) => el('ul', { class: 'notices' }, ...list.map((text) => el('li', {}, text))));
    this.numbers = new Part('Numbers by session', sessionTable, false);
    this.events = new Part('Last events', (list) => el('pre', { tabindex: '0' }, list.join('\n')), false);
    this.config = new Part('Config', (config) => table(['field', 'value'], Object.entries(config), 'Config'), false);
    this.root = el('article', {},
      back(leave), el('div', { class: 'heading' }, this.title, this.badge), this.warning.root, this.place, this.bar, this.facts, this.error.root,
      el('div', { class: 'charts' },
        el('div', {}, this.charts.accuracy.root, this.legends.accuracy),
        el('div', {}, this.charts.loss.root, this.legends.loss)),
      this.notices.root, this.numbers.root, this.events.root, this.config.root);
  }

  update(run, detail) {
    setText(this.title, label(run));
    setText(this.badge, run.state);
    this.warning.update([run]);
    this.badge.className = `badge ${run.state}`;
    setText(this.place, `${setting(run)}, ${run.backbone}, ${run.learner} · ${run.name}`);
    this.bar.value = run.done ?? 0;
    this.bar.hidden = run.done === null;
    this.showFacts(run);
    const both = Object.entries(METRICS).map(([metric, name], colour) => ({ name, colour, points: curve(run, metric) }));
    this.charts.accuracy.update(both, { far: run.sessions });
    legend(this.legends.accuracy, both, (one) => (one.points.length ? plusMinus(last(one.points).slice(1)) : ''));
    this.numbers.update(run.curves);
    if (detail) this.showDetail(run, detail);
  }

  showDetail(run, detail) {
    const terms = Object.entries(detail.series).map(([name, points], colour) => ({ name, colour: colour % COLOURS, points }));
    this.charts.loss.update(terms, { far: run.steps ? run.steps * Math.min(run.session, run.sessions) : 1, marks: detail.starts });
    legend(this.legends.loss, terms, (one) => number(run.loss[one.name]));
    this.error.root.hidden = detail.error === null;
    this.error.update(detail.error ?? '');
    this.notices.root.hidden = !detail.notices.length;
    this.notices.update(detail.notices);
    this.events.update(detail.events);
    this.config.update(detail.config);
  }

  showFacts(run) {
    const facts = {
      session: run.sessions ? `${run.session} of ${run.sessions}` : '–',
      step: run.steps ? `${run.step} of ${run.steps}` : String(run.step),
      doing: run.state === 'running' ? run.phase : run.state,
      speed: run.speed === null ? '–' : `${number(run.speed)} steps/s`,
      'time left': run.state === 'running' ? duration(run.left) : '–',
      trained: duration(run.trained),
      forgetting: last(run.curves.forgetting) === null || !run.curves.forgetting.length ? '–' : `${percent(last(run.curves.forgetting))} points`,
      'last change': ago(run.changed),
    };
    if (!this.values) {
      this.values = Object.fromEntries(Object.keys(facts).map((name) => [name, el('dd')]));
      this.facts.append(...Object.entries(this.values).map(([name, value]) => el('div', {}, el('dt', {}, name), value)));
    }
    for (const [name, text] of Object.entries(facts)) setText(this.values[name], text);
  }
}

function sessionTable(curves) {
  const rows = curves.session.map((session, i) => [
    String(session), plusMinus(curves.meta_test[i]), plusMinus(curves.seen[i]),
    curves.forgetting[i] === null ? '–' : percent(curves.forgetting[i]),
  ]);
  return table(['session', 'unseen, %', 'seen, %', 'forgetting, points'], rows, 'Accuracy by session');
}

function legend(list, series, value) {
  list.replaceChildren(...series.map((one) => (
    el('li', {}, el('i', { class: `swatch c${one.colour} ${one.stroke ?? ''}` }), `${one.name} `, el('b', {}, value(one)))
  )));
}

export class ComparePanel {
  constructor(leave, forget) {
    this.forget = forget;
    this.title = el('h2');
    this.warning = new Warning();
    this.note = el('p', { class: 'place' });
    this.legend = el('ul', { class: 'legend long' });
    this.charts = Object.fromEntries(Object.entries(METRICS).map(([metric, name]) => [metric, accuracyChart(name)]));
    this.term = el('select', { id: 'term', onchange: () => this.drawLoss() });
    this.loss = lossChart('Loss by step');
    this.results = new Part('Results', (rows) => table(
      ['run', 'state', 'unseen, %', 'seen, %', 'mean unseen, %', 'forgetting, points', 'steps/s', 'trained'], rows, 'Results'));
    this.differences = new Part('Differences', ({ names, rows }) => (
      rows.length ? table(['field', ...names], rows, 'Settings that differ') : el('p', {}, 'The configs are the same.')));
    this.root = el('article', {},
      back(leave), el('div', { class: 'heading' }, this.title), this.warning.root, this.note, this.legend,
      el('div', { class: 'charts' }, this.charts.meta_test.root, this.charts.seen.root),
      this.results.root, this.differences.root,
      el('div', { class: 'charts one' }, el('div', {}, el('label', { for: 'term' }, 'Loss term '), this.term, this.loss.root)));
  }

  update(runs, details) {
    const shown = runs.slice(0, MOST_COMPARED);
    setText(this.title, `${runs.length} ${runs.length === 1 ? 'run' : 'runs'} side by side`);
    this.warning.update(runs);
    setText(this.note, runs.length > shown.length ? `The first ${MOST_COMPARED} are drawn.` : 'Bounds are dashed levels.');
    this.note.hidden = runs.length === shown.length && !shown.some((run) => run.bound);
    this.named = unique(shown);
    const styled = shown.map((run, i) => ({ run, name: this.named[i], colour: i % COLOURS, stroke: run.bound ? 'dashed' : i >= COLOURS ? 'dotted' : '' }));
    const far = Math.max(...shown.map((run) => (run.bound ? 1 : run.sessions || 1)));
    for (const [metric, chart] of Object.entries(this.charts)) {
      const level = (run) => run.bound && far > 1;
      chart.update(styled.map(({ run, ...style }) => ({ ...style, flat: level(run), points: curve(run, metric) })), { far });
    }
    this.showLegend(styled);
    this.results.update(shown.map((run, i) => resultRow(run, this.named[i])));
    Object.assign(this, { styled, details });
    this.showDetails(shown);
  }

  showLegend(styled) {
    const now = JSON.stringify(styled.map(({ run, name }) => [run.id, name, run.state]));
    if (now === this.legendShown) return;
    this.legendShown = now;
    this.legend.replaceChildren(...styled.map(({ run, name, colour, stroke }) => (
      el('li', {}, el('i', { class: `swatch c${colour} ${stroke}` }), `${name} `,
        el('button', { class: 'forget', 'aria-label': `Take ${name} out`, onclick: () => this.forget(run.id) }, '×')))));
  }

  showDetails(shown) {
    const known = shown.filter((run) => this.details.has(run.id)).map((run) => this.details.get(run.id));
    const terms = [...new Set(known.flatMap((detail) => Object.keys(detail.series)))];
    if (JSON.stringify(terms) !== this.terms) {
      this.terms = JSON.stringify(terms);
      const kept = this.term.value;
      this.term.replaceChildren(...terms.map((name) => el('option', { value: name }, name)));
      if (terms.includes(kept)) this.term.value = kept;
    }
    if (known.length === shown.length) this.differences.update({ names: this.named, rows: differences(known) });
    this.drawLoss();
  }

  drawLoss() {
    const series = this.styled.map(({ run, ...style }) => ({ ...style, points: this.details.get(run.id)?.series[this.term.value] ?? [] }));
    this.loss.update(series, { far: 1 });
  }
}

// Two runs with the same label are told apart by their folders.
function unique(runs) {
  const labels = runs.map(label);
  return labels.map((text, i) => (labels.filter((other) => other === text).length > 1 ? `${text} (${runs[i].name})` : text));
}

function resultRow(run, name) {
  const mean = (metric) => {
    const values = run.curves[metric].map(([value]) => value);
    return values.length ? percent(values.reduce((a, b) => a + b) / values.length) : '–';
  };
  const at = (metric) => (run.curves[metric].length ? plusMinus(last(run.curves[metric])) : '–');
  const lost = last(run.curves.forgetting);
  const state = run.state === 'running' && run.sessions ? `task ${run.session}/${run.sessions}` : run.state;
  return [name, state, at('meta_test'), at('seen'), mean('meta_test'),
    lost === null || lost === undefined ? '–' : percent(lost), number(run.speed), duration(run.trained)];
}

function differences(details) {
  const fields = [...new Set(details.flatMap((detail) => Object.keys(detail.config)))];
  return fields
    .map((field) => [field, ...details.map((detail) => (field in detail.config ? detail.config[field] : '–'))])
    .filter(([, ...values]) => new Set(values).size > 1);
}
