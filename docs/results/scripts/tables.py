"""The generated parts of a results page. Each is a function of the words that follow its name in a template."""

import json
from collections.abc import Sequence

from committed import METRICS, RUNS, Group, Run, groups
from episodica.config import RunConfig
from episodica.config.flat import flatten
from episodica.report.cells import Cell, Row, Table, shown
from episodica.report.comparison import Run as ReportedRun
from episodica.report.formats.markdown import markdown
from episodica.report.settings import by_setting, tags, title
from episodica.report.tables import accuracy_table

HEADINGS = {"meta_test": "Unseen classes", "seen": "Seen classes (mean of the tasks)"}
NOT_A_FACTOR = ("data.", "method.name", "method.", "memory.", "seed", "threads", "device", "kernels", "stream.sessions")


def accuracy(name: str) -> str:
    """Both tables of every setting of a group, the paper's numbers beside ours."""
    group, parts = Group.read(name), []
    settings = by_setting(list[ReportedRun](group.runs))
    beside = [lines[0].config for lines in settings]
    for lines in settings:
        parts.append(f"**{title(lines[0])}, {', '.join(tags(lines[0].config, beside))}**")
        parts += [f"{HEADINGS[metric]}:\n\n{markdown(accuracy_table(lines, metric)).rstrip()}" for metric in METRICS]
    return "\n\n".join([*parts, provenance(group)])


def provenance(group: Group) -> str:
    """What every table says: orders, seeds, how long it took, and the command."""
    command = "\n".join(f"    {line}" for line in group.command.splitlines())
    if not group.runs:
        return f"*Not run yet.* The command:\n\n{command}"
    orders, seeds = (
        ", ".join(map(str, sorted(found)))
        for found in ({_order(config) for config, _ in group.runs}, {config.seed for config, _ in group.runs})
    )
    took = f"{len(group.runs)} runs, {group.minutes / 60:.1f} core-hours"
    return f"Orders: {orders}; seeds: {seeds}; {took}; results in `docs/results/runs/{group.name}/`:\n\n{command}"


def _order(config: RunConfig) -> str:
    stream = config.stream
    return str(stream.seed) if stream.order == "seeded" else stream.order


def paired(name: str, method: str) -> str:
    """Every run minus that of a method with the same order and seed, after the last session."""
    group, rows = Group.read(name), []
    settings = by_setting(list[ReportedRun](group.runs))
    for lines in settings:
        base = next((line for line in lines if line.name == method), None)
        for line in lines if base else ():
            for run in line.runs if line is not base else ():
                reference = _repeat_of(run, base.runs)  # type: ignore[union-attr]
                if reference is not None:
                    label = line.name if len(settings) == 1 else f"{line.name}, {run[0].stream.tasks} tasks"
                    rows.append(_difference(group, label, run, reference))
    columns = ("order", "seed", "unseen classes", "seen classes", "interval")
    table = Table("paired", "", columns, tuple(rows), first=f"minus {method}")
    return markdown(table).rstrip() if rows else provenance(group)


def _repeat_of(run: Run, others: Sequence[Run]) -> Run | None:
    key = _order(run[0]), run[0].seed
    return next((other for other in others if (_order(other[0]), other[0].seed) == key), None)


def _difference(group: Group, name: str, run: Run, reference: Run) -> Row:
    apart = [group.difference(run, reference, metric) for metric in METRICS]
    cells = [Cell(100 * one.mean, over_episodes=100 * one.ci95, signed=True) for one in apart]
    how = "paired" if apart[0].paired else "unpaired"
    return Row(name, (*(Cell(word=w) for w in (_order(run[0]), str(run[0].seed))), *cells, Cell(word=how)))


def by_task(name: str, method: str) -> str:
    """Accuracy on each task after the last session: what the order of the classes is worth."""
    group = Group.read(name)
    runs = [(config, results) for config, results in group.runs if config.method.name == method]
    rows = []
    for config, results in runs:
        tasks = [task.mean for task in results.sessions[-1].per_task]
        means = [sum(tasks[:n]) / n for n in (2, 4, 8, len(tasks))]
        label = f"{method}, order {_order(config)}, seed {config.seed}, {config.train.episodes_per_step} a step"
        rows.append(Row(label, tuple(Cell(100 * value) for value in (*means, *tasks))))
    if not rows:
        return provenance(group)
    count = len(runs[0][1].sessions[-1].per_task)
    columns = ("tasks 1-2", "1-4", "1-8", "all", *map(str, range(1, count + 1)))
    return markdown(Table("by_task", "", columns, tuple(rows), first="run")).rstrip()


def factors(name: str, ours: str) -> str:
    """A row for each setting: in what it differs from ours, and both methods after the last session; then ours as
    another group has it, after as many sessions."""
    group, methods = Group.read(name), ("ft", "erd")
    settings: dict[str, dict[str, Run]] = {}
    for run in group.runs:
        settings.setdefault(factor(run[0]), {})[run[0].method.name] = run
    sessions = {len(results.sessions) for _, results in group.runs}
    for config, results in Group.read(ours).runs:
        if config.method.name in methods and not config.is_bound:
            stopped = results.model_copy(update={"sessions": results.sessions[: max(sessions)]})
            settings.setdefault(f"ours, order {_order(config)}", {})[config.method.name] = (config, stopped)
    rows = []
    for label, runs in sorted(settings.items(), key=lambda item: (item[0].count(","), item[0])):
        cells = [_last(runs.get(method), metric) for metric in reversed(METRICS) for method in methods]
        apart = [Cell()] * len(METRICS)
        if all(method in runs for method in methods):
            found = [group.difference(runs["erd"], runs["ft"], metric) for metric in reversed(METRICS)]
            apart = [Cell(100 * one.mean, over_episodes=100 * one.ci95, signed=True) for one in found]
        rows.append(Row(label, (*cells, *apart)))
    columns = ("seen, ft", "seen, erd", "unseen, ft", "unseen, erd", "seen, erd minus ft", "unseen, erd minus ft")
    table = markdown(Table("factors", "", columns, tuple(rows), first="setting")).rstrip() + "\n\n" if rows else ""
    return table + provenance(group)


def factor(config: RunConfig) -> str:
    """In what a run of the study of seen classes differs from ours."""
    chosen = flatten(config.chosen())
    ignored = (*NOT_A_FACTOR, "stream.tasks", "train.epochs", "train.episodes", "eval.", "augment.centre")
    told = {path: value for path, value in chosen.items() if "." in path and not path.startswith(ignored)}
    return ", ".join(f"{path.replace('.', ' ')} {value}" for path, value in told.items()) or "ours"


def _last(run: Run | None, metric: str) -> Cell:
    if run is None:
        return Cell()
    found = getattr(run[1].sessions[-1], metric)
    return Cell(100 * found.mean, over_episodes=100 * found.ci95)


def centroids(name: str) -> str:
    """Unseen / seen accuracy of every run that was evaluated in several ways, a line for each way, by session."""
    group = Group.read(name)
    found = {
        config: json.loads(path.read_text())
        for config, results in group.runs
        if (path := RUNS / name / results.run / "centroids.json").exists()
    }
    if not found:
        return "*Not measured yet*: `python docs/results/scripts/centroids.py DATA RUN...`, then `collect.py`."
    sessions = sorted({row["session"] for config, ways in found.items() if not config.is_bound for row in ways["raw"]})
    rows = []
    for config, ways in found.items():
        for way, measured in ways.items():
            words = {
                row["session"]: f"{shown(100 * row['meta_test'])} / {shown(100 * row['seen'])}" for row in measured
            }
            if config.is_bound:  # its only session stands where the stream ends
                words = {sessions[-1]: words[1]}
            label = f"{_name(config)}, order {_order(config)}, seed {config.seed}: {way}"
            rows.append(Row(label, tuple(Cell(word=words.get(session, "")) for session in sessions)))
    columns = tuple(f"session {session}" for session in sessions)
    return markdown(Table("centroids", "", columns, tuple(rows), first="unseen / seen")).rstrip()


def _name(config: RunConfig) -> str:
    """Of the method; bounds are told apart."""
    name = f"{config.method.name}, all tasks at once" if config.stream.merged else config.method.name
    return f"{name}, {config.train.episodes_per_step} a step" if name == "joint" else name


def times() -> str:
    rows = []
    for group in groups():
        train, evaluate = (
            sum(getattr(s, f"seconds_{part}") for _, r in group.runs for s in r.sessions) / 3600
            for part in ("train", "eval")
        )
        rows.append(
            Row(group.name, tuple(Cell(word=w) for w in (str(len(group.runs)), f"{train:.1f}", f"{evaluate:.1f}")))
        )
    total = sum(group.minutes for group in groups()) / 60
    table = Table("times", "", ("runs", "training, core-hours", "evaluation, core-hours"), tuple(rows), first="group")
    return markdown(table) + f"\nIn all {total:.1f} core-hours."


def encoders(name: str) -> str:
    """What is done with a pretrained encoder, a line for each way: after the last session, 1-shot and 5-shot."""
    group, lines = Group.read(name), []
    for config, results in sorted(group.runs, key=lambda run: run[1].sessions[-1].meta_test.mean):
        few = [results.sessions[-1], *(other.sessions[-1] for other in results.evaluations)]
        cells = [f"{100 * one.meta_test.mean:.1f} ± {100 * one.meta_test.ci95:.1f}" for one in few]
        cells += [f"{100 * one.seen.mean:.1f} ± {100 * one.seen.ci95:.1f}" for one in few]
        lost = few[0].forgetting
        cells.append("-" if lost is None else f"{100 * lost:.1f}")
        cells.append(f"{sum(session.seconds_train for session in results.sessions):.0f}")
        lines.append(f"| {_way(config)} | {' | '.join(cells)} |")
    head = "| | unseen, 1-shot | 5-shot | seen, 1-shot | 5-shot | forgetting | s of training |"
    return "\n".join([head, "|---|" + "---:|" * 6, *lines, "", provenance(group)])


def _way(config: RunConfig) -> str:
    trained = config.backbone.declared().train_
    if trained == "none":
        return "frozen, whitened means" if config.learner.name == "whitened" else "frozen, nearest mean"
    what = "from nothing (4-Conv, 84 px)" if config.backbone.name == "conv4" else "last block trained"
    return f"{what}, {config.method.name}"
