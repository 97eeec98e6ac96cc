"""The tables of results: accuracy and forgetting by session, the paper's number beside ours."""

from collections.abc import Sequence

from episodica.report.aggregate import Line, Value, gap_to_joint
from episodica.report.cells import Cell, Row, Table, with_best
from episodica.report.comparison import METRICS, shown_sessions
from episodica.report.paper import Printed, paper_gap, paper_number


def accuracy_table(lines: Sequence[Line], metric: str, name: str = "") -> Table:
    """One line for each method: the shown sessions, the average of all sessions, and the gap to joint at the last."""
    lines = [line for line in lines if line.has(metric)]
    shown = shown_sessions(max(line.last for line in lines))
    bounds = _episodes_of_bounds(lines, metric)
    gaps = [_heading(episodes, bounds) for episodes in bounds]
    rows = []
    for line in lines:
        run, stands = line.runs[0], [line.last] if line.bound else shown
        cells = [_cell(line.at(s, metric), paper_number(run, metric, s) if s in stands else None) for s in shown]
        average = _cell(line.average(metric), paper_number(run, metric, "avg"))
        apart = [_gap(line, lines, metric, episodes) for episodes in bounds]
        rows.append(Row(line.name, (*cells, average, *apart), line.repeats, line.bound))
    return Table(
        name or metric,
        f"Accuracy on {METRICS[metric]}",
        (*map(str, shown), "avg", *gaps),
        with_best(tuple(rows), range(len(shown) + 1)),
    )


def forgetting_table(lines: Sequence[Line], name: str = "forgetting") -> Table | None:
    """Points lost on earlier tasks since they were known best; none where no line has two sessions."""
    shown = [s for s in shown_sessions(max(line.last for line in lines)) if s > 1]
    rows = [
        Row(line.name, tuple(_cell(line.forgetting(s)) for s in shown), line.repeats)
        for line in lines
        if any(line.forgetting(s) is not None for s in shown)
    ]
    title = "Forgetting on earlier tasks, points"
    return Table(name, title, tuple(map(str, shown)), tuple(rows)) if rows else None


def _gap(line: Line, lines: Sequence[Line], metric: str, episodes: int) -> Cell:
    """To the bound with so many episodes a step; the paper's has one."""
    paper = paper_gap(line.runs[0]) if metric == "meta_test" and episodes == 1 else None
    bounds = [other for other in lines if other.bound and other.config.train.episodes_per_step == episodes]
    gaps = [gap for bound in bounds if (gap := gap_to_joint(line, bound, metric)) is not None]
    return _cell(gaps[0] if gaps else None, paper)


def _episodes_of_bounds(lines: Sequence[Line], metric: str) -> list[int]:
    """A column for each kind of bound; without any, one for the paper's gap where it prints one."""
    found = sorted({line.config.train.episodes_per_step for line in lines if line.bound})
    printed = metric == "meta_test" and any(paper_gap(line.runs[0]) for line in lines)
    return found or [1] * printed


def _heading(episodes: int, bounds: Sequence[int]) -> str:
    return "gap to joint" if len(bounds) == 1 else f"gap to joint, {episodes} a step"


def _cell(value: Value | None, paper: Printed | None = None) -> Cell:
    if value is None:
        return Cell(paper=paper.value, source=paper.source) if paper else Cell()
    repeats, episodes = (None if width is None else 100 * width for width in (value.over_repeats, value.over_episodes))
    beside, source = (paper.value, paper.source) if paper else (None, "")
    return Cell(100 * value.mean, repeats, episodes, beside, source)
