// The page: what the server tells, what is chosen, and what is shown of it.

import { setText } from './dom.js';
import { ComparePanel, MOST_COMPARED, RunPanel } from './panel.js';
import { Roster } from './roster.js';

const by = (id) => document.getElementById(id);
const narrow = matchMedia('(max-width: 860px)');
const runs = new Map(); // summaries, by id
const details = new Map(); // of the runs that are shown, by id
const asked = new Map(); // the summary for which a detail was asked last, by id
const chosen = new Set();
let opened = null;
let comparing = false;
let panel = null;

const roster = new Roster(
  { list: by('runs'), filter: by('filter'), states: by('states'), nothing: by('nothing') },
  { open, choose },
);

function open(id) {
  [opened, comparing] = [id, false];
  document.body.dataset.side = 'panel';
  remember();
  render();
}

function choose(id) {
  chosen.has(id) ? chosen.delete(id) : chosen.add(id);
  afterChoice();
}

function afterChoice() {
  if (!narrow.matches || !chosen.size) comparing = chosen.size > 1 || (comparing && chosen.size > 0);
  remember();
  render();
}

function compare() {
  comparing = true;
  document.body.dataset.side = 'panel';
  remember();
  render();
}

function leave() {
  document.body.dataset.side = 'roster';
  roster.focus(opened && !comparing ? opened : roster.at);
}

// The address holds what is shown, so that it can be kept, reloaded and sent to a colleague.
function remember() {
  const place = comparing ? `#compare=${[...chosen].join()}` : opened ? `#run=${opened}` : '#';
  history.replaceState(null, '', place);
}

function recall() {
  const [what, ids = ''] = location.hash.slice(1).split('=');
  if (what === 'run') [opened, comparing] = [ids, false];
  if (what === 'compare') {
    chosen.clear();
    ids.split(',').filter(Boolean).forEach((id) => chosen.add(id));
    comparing = true;
  }
  if (what === 'run' || what === 'compare') document.body.dataset.side = 'panel';
  if (runs.size) render();
}

function shownIds() {
  if (comparing) return [...chosen].filter((id) => runs.has(id)).slice(0, MOST_COMPARED);
  return runs.has(opened) ? [opened] : [];
}

async function fetchDetails() {
  for (const id of shownIds()) {
    const run = runs.get(id);
    if (asked.get(id) === run) continue;
    asked.set(id, run);
    try {
      const answer = await fetch(`/api/runs/${id}`);
      if (answer.ok) details.set(id, await answer.json());
      schedule();
    } catch {
      asked.delete(id); // the stream tells when the server is back
    }
  }
}

let scheduled = false;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    render();
  });
}

function render() {
  roster.update(runs, chosen, comparing ? null : opened);
  if (!comparing && !runs.has(opened) && roster.shown.length && !narrow.matches) {
    opened = roster.shown[0];
    roster.update(runs, chosen, opened);
  }
  const count = [...chosen].filter((id) => runs.has(id)).length;
  setText(by('compare'), count ? `Compare ${count}` : 'Compare');
  by('compare').disabled = by('none').disabled = count === 0;
  const ids = shownIds();
  if (!ids.length) {
    by('panel').replaceChildren();
    panel = null;
    return;
  }
  const subject = comparing ? 'several' : opened;
  if (panel?.of !== subject) {
    panel = comparing ? new ComparePanel(leave, choose) : new RunPanel(leave);
    panel.of = subject;
    by('panel').replaceChildren(panel.root);
  }
  if (comparing) panel.update([...chosen].filter((id) => runs.has(id)).map((id) => runs.get(id)), details);
  else panel.update(runs.get(opened), details.get(opened));
  fetchDetails();
}

function listen() {
  const stream = new EventSource('/api/events');
  const say = (text, kind) => {
    setText(by('link'), text);
    by('link').dataset.link = kind;
  };
  stream.addEventListener('open', () => say('live', 'live'));
  stream.addEventListener('error', () => say('server gone, trying again', 'lost'));
  stream.addEventListener('runs', (event) => {
    const update = JSON.parse(event.data);
    if (update.whole) {
      runs.clear();
      asked.clear();
    }
    update.gone.forEach((id) => [runs, details, asked].forEach((known) => known.delete(id)));
    update.runs.forEach((run) => runs.set(run.id, run));
    setText(by('folder'), update.folder);
    document.title = title();
    schedule();
  });
}

function title() {
  const running = [...runs.values()].filter((run) => run.state === 'running').length;
  return `${running ? `${running} running` : `${runs.size} runs`} · episodica watch`;
}

by('compare').addEventListener('click', compare);
by('none').addEventListener('click', () => (chosen.clear(), afterChoice()));
by('all').addEventListener('click', () => (roster.shown.forEach((id) => chosen.add(id)), afterChoice()));
by('panel').addEventListener('keydown', (event) => {
  if (event.key === 'Escape') leave();
});
addEventListener('hashchange', recall);
setInterval(() => !document.hidden && runs.size && schedule(), 5000); // "12 s ago" grows older by itself
recall();
listen();
