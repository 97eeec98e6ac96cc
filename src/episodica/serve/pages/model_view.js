// The model as a thing: what it is, learning in depth, taking it along, bringing one in.

import { importModel, startJob, stopJob } from './api.js';
import { el } from './dom.js';
import { icon } from './icons.js';
import { note, working } from './messages.js';
import { can, changed, model, refresh } from './model.js';
import { section } from './section.js';
import { count, percent, span, t } from './strings.js';

export function modelView() {
  const facts = el('dl', { class: 'facts' });
  const job = el('div', { class: 'stack tight' });
  const brought = el('div', {});
  const exports = el('div', { class: 'row' });
  const input = el('input', { type: 'file', class: 'hidden', accept: '.zip,application/zip' });
  const choose = el('label', { class: 'button' }, input, icon('upload'), t('chooseZip'));
  input.addEventListener('change', () => {
    const [file] = input.files;
    input.value = '';
    if (file) working(choose, () => bring(file), wrong);
  });
  const part = (title, text, ...inside) =>
    el('div', { class: 'card' }, el('h2', {}, title), el('p', { class: 'hint' }, text), ...inside);
  const node = section(
    t('view_model'),
    null,
    el(
      'div',
      { class: 'stack halves' },
      el('div', { class: 'card' }, el('h2', {}, t('aboutModel')), facts),
      part(t('inDepth'), t('inDepthText'), job),
      part(t('export'), t('exportText'), exports),
      part(t('import'), t('importText'), el('div', { class: 'row' }, can('import') ? choose : null), brought),
    ),
    el('p', { class: 'hint' }, el('a', { href: '/docs' }, t('interface'))),
  );

  function wrong(text) {
    brought.replaceChildren(note('error', text));
  }

  async function bring(file) {
    brought.replaceChildren(el('div', { class: 'bar waiting' }, el('span', {})));
    const answer = await importModel(file);
    brought.replaceChildren();
    await changed(answer);
  }

  function update() {
    const { now } = model;
    const { accuracy, classes, encoder, name, state } = now;
    const rows = [
      [t('factName'), name],
      [t('factClasses'), count(classes.length)],
      [t('factPictures'), count(classes.reduce((sum, { known_from: from, images }) => sum + (from ?? images), 0))],
      accuracy
        ? [
            t('factAccuracy'),
            t('accuracyBetween', percent(accuracy.value), percent(accuracy.low), percent(accuracy.high)),
          ]
        : null,
      encoder ? [t('factEncoder'), t('encoderSize', encoder.name, encoder.image_size)] : null,
      state ? [t('factState'), state.slice(0, 15)] : null,
    ];
    facts.replaceChildren(...rows.filter(Boolean).flatMap(([term, what]) => [el('dt', {}, term), el('dd', {}, what)]));
    fillJob(now.job);
    exports.replaceChildren(
      ...['model', 'onnx'].map((what) =>
        can(what === 'model' ? 'export' : 'onnx')
          ? el(
              'a',
              { class: 'button', href: `/export/${what}.zip`, download: '' },
              icon('download'),
              t(`export_${what}`),
            )
          : el('p', { class: 'hint' }, now.cannot[what === 'model' ? 'export' : 'onnx'] || ''),
      ),
    );
  }

  let drawnJob = null;
  function fillJob(now) {
    const key = JSON.stringify([now, model.now.can.adapt]);
    if (key === drawnJob) return;
    drawnJob = key;
    const held = job.contains(document.activeElement);
    job.replaceChildren(...(now?.state === 'running' ? running(now) : idle(now)));
    if (held) job.querySelector('button')?.focus();
  }

  function running({ stage, done, total, seconds_left: left }) {
    const filled = el('span', {});
    if (total) filled.style.width = `${(100 * done) / total}%`;
    const bar = el(
      'div',
      {
        class: total ? 'bar' : 'bar waiting',
        role: 'progressbar',
        'aria-label': t('inDepth'),
        'aria-valuemin': 0,
        'aria-valuemax': total || null,
        'aria-valuenow': total ? done : null,
      },
      filled,
    );
    const words = [stage, total ? t('ofTotal', done, total) : null, left === null ? null : t('timeLeft', span(left))]
      .filter(Boolean)
      .join(' · ');
    const stop = el(
      'button',
      {
        type: 'button',
        onclick: (event) =>
          working(event.currentTarget, async () => {
            await stopJob();
            await refresh();
          }),
      },
      icon('stop'),
      t('stop'),
    );
    return [
      el('p', { class: 'hint' }, words),
      bar,
      el('div', { class: 'row apart' }, el('small', {}, t('answersMeanwhile')), stop),
    ];
  }

  function idle(last) {
    const told = last?.result
      ? [note(last.state === 'failed' ? 'error' : last.state === 'done' ? 'good' : 'plain', last.result)]
      : [];
    if (!can('adapt')) return [...told, note('plain', model.now.cannot.adapt || '')];
    const problem = el('div', {});
    const begin = el(
      'button',
      {
        type: 'button',
        class: 'main',
        onclick: (event) =>
          working(
            event.currentTarget,
            async () => {
              await startJob('adapt');
              await refresh();
            },
            (text) => problem.replaceChildren(note('doubt', text)),
          ),
      },
      icon('sparkle'),
      t('learnInDepth'),
    );
    return [...told, el('div', { class: 'row' }, begin), problem];
  }

  return { node, update, paste: () => false, leave: () => {} };
}
