"""The result table on the screen: method x session, both accuracies with their intervals, forgetting, gap to joint."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from episodica.config import NOT_IN_THE_NUMBERS, RunConfig
from episodica.records.results import Mean, Results, Session
from episodica.sweep.flat import flatten

Run = tuple[RunConfig, Results]
COLUMNS = 6  # sessions shown at most; longer streams show the powers of two and the last, as the paper does


def labels(configs: Sequence[RunConfig]) -> dict[str, str]:
    """A short name for each run: its method and, where a method occurs more than once, what sets the runs apart."""
    named = {}
    for config in configs:
        peers = [flatten(peer.tree()) for peer in configs if peer.method.name == config.method.name]
        own = flatten(config.tree())
        apart = [path for path in own if any(peer.get(path) != own[path] for peer in peers)]
        short = Counter(path.split(".")[-1] for path in apart)
        keys = {path: key if short[key := path.split(".")[-1]] == 1 else path for path in apart}
        named[config.run_id] = " ".join([config.method.name, *(f"{key}={own[path]}" for path, key in keys.items())])
    return named


def is_bound(config: RunConfig) -> bool:
    """Whether the run trains on all tasks at once: one session, which stands where the stream ends."""
    return config.method.component.merges_tasks  # type: ignore[attr-defined]


def joint_of(run: Run, runs: Sequence[Run]) -> Run | None:
    """The bound of a run: joint training in the same setting; of several the one with most episodes a step."""
    bounds = [other for other in runs if is_bound(other[0]) and setting(other[0]) == setting(run[0])]
    return max(bounds, key=lambda bound: bound[0].train.episodes_per_step, default=None)


def setting(config: RunConfig) -> dict[str, Any]:
    """What a run and its bound have in common."""
    ignored = ("method.", "memory.", "train.episodes_per_step", *NOT_IN_THE_NUMBERS)
    return {path: value for path, value in flatten(config.tree()).items() if not path.startswith(ignored)}


def examined(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs as they were examined with each way and number of shots, that of training first."""
    shapes: dict[tuple[int, int], list[Run]] = {}
    for config, results in runs:
        for one in results.examinations():
            shapes.setdefault((one.shape["way"], one.shape["shots"]), []).append((config, one))
    return list(shapes.values())


def results_tables(runs: Sequence[Run]) -> list[Table]:
    """For each way and number of shots three tables, a line a run: accuracy on unseen and seen classes, forgetting."""
    return [table for part in examined(runs) for table in _tables_of_one_shape(part)]


def _tables_of_one_shape(runs: Sequence[Run]) -> list[Table]:
    shape = runs[0][1].shape
    sessions = max((config.stream.tasks for config, _ in runs), default=1)
    shown = [s for s in range(1, sessions + 1) if sessions <= COLUMNS or s & (s - 1) == 0 or s == sessions]
    names = labels([config for config, _ in runs])
    tables = []
    for title, metric in (("unseen classes (meta-test)", "meta_test"), ("seen classes (mean of the tasks)", "seen")):
        title = f"{shape['way']}-way {shape['shots']}-shot accuracy on {title}, % ± 95 % interval"
        table = _table(title, shown, "avg", "gap to joint")
        for run in runs:
            table.add_row(names[run[0].run_id], *_accuracies(run, metric, shown), _gap(run, runs, metric))
        tables.append(table)
    lost = _table("Forgetting on earlier tasks, points", shown)
    for config, results in runs:
        if len(results.sessions) > 1:
            lost.add_row(names[config.run_id], *_forgetting(results, shown))
    return [*tables, lost] if lost.rows else tables


def _table(title: str, shown: Sequence[int], *more: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("session", no_wrap=True)
    for heading in (*map(str, shown), *more):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _accuracies(run: Run, metric: str, shown: Sequence[int]) -> list[str]:
    config, results = run
    by_session = _by_session(config, results)
    cells = [_cell(getattr(by_session[s], metric)) if s in by_session else "" for s in shown]
    one = is_bound(config) or results.average is None
    return [*cells, "" if one else f"{100 * getattr(results.average, metric):.1f}"]


def _by_session(config: RunConfig, results: Results) -> dict[int, Session]:
    if is_bound(config) and results.sessions:
        return {config.stream.tasks: results.sessions[-1]}
    return {row.session: row for row in results.sessions}


def _cell(value: Mean) -> str:
    return f"{100 * value.mean:.1f}±{100 * value.ci95:.1f}"


def _gap(run: Run, runs: Sequence[Run], metric: str) -> str:
    bound = joint_of(run, runs)
    if bound is None or bound is run or not run[1].sessions or not bound[1].sessions:
        return ""
    ours, theirs = (getattr(results.sessions[-1], metric).mean for results in (run[1], bound[1]))
    return f"{100 * (theirs - ours):.1f}"


def _forgetting(results: Results, shown: Sequence[int]) -> list[str]:
    by_session = {row.session: row.forgetting for row in results.sessions}
    return ["" if by_session.get(s) is None else f"{100 * (by_session[s] or 0):.1f}" for s in shown]
