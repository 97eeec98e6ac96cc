"""The tables of results: accuracy and forgetting by session, the paper's number beside ours."""

from collections.abc import Sequence
from typing import NamedTuple

from episodica.report.aggregate import Line, Value, gap_to_joint
from episodica.report.cells import Cell, Row, Table, with_best
from episodica.report.comparison import METRICS, shown_sessions
from episodica.report.paper import Printed, paper_gap, paper_number


def accuracy_table(lines: Sequence[Line], metric: str, name: str = "") -> Table:
    """One line for each method: the shown sessions, the average of all sessions, and the gap to joint at the last."""
    lines = [line for line in lines if line.has(metric)]
    shown = shown_sessions(max(line.last for line in lines))
    bounds = _kinds_of_bounds(lines, metric)
    gaps = [kind.heading(bounds) for kind in bounds]
    rows = []
    for line in lines:
        run, stands = line.runs[0], [line.last] if line.bound else shown
        cells = [_cell(line.at(s, metric), paper_number(run, metric, s) if s in stands else None) for s in shown]
        average = _cell(line.average(metric), paper_number(run, metric, "avg"))
        apart = [_gap(line, lines, metric, kind) for kind in bounds]
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


class _Bound(NamedTuple):
    """A kind of bound, which has a column of its own: joint training or the method itself, with all tasks at once."""

    own: bool
    episodes: int  # a step

    @classmethod
    def of(cls, line: Line) -> "_Bound":
        return cls(line.own, line.config.train.episodes_per_step)

    def heading(self, kinds: Sequence["_Bound"]) -> str:
        name = "gap to the method with all tasks at once" if self.own else "gap to joint"
        return name if sum(kind.own == self.own for kind in kinds) == 1 else f"{name}, {self.episodes} a step"


PAPER = _Bound(own=False, episodes=1)


def _gap(line: Line, lines: Sequence[Line], metric: str, kind: _Bound) -> Cell:
    """To the bound of a kind; the paper's has one episode a step."""
    paper = paper_gap(line.runs[0]) if metric == "meta_test" and kind == PAPER else None
    bounds = [other for other in lines if other.bound and _Bound.of(other) == kind]
    gaps = [gap for bound in bounds if (gap := gap_to_joint(line, bound, metric)) is not None]
    return _cell(gaps[0] if gaps else None, paper)


def _kinds_of_bounds(lines: Sequence[Line], metric: str) -> list[_Bound]:
    """A column for each; without any, one for the paper's gap where it prints one."""
    found = sorted({_Bound.of(line) for line in lines if line.bound})
    printed = metric == "meta_test" and any(paper_gap(line.runs[0]) for line in lines)
    return found or [PAPER] * printed


def _cell(value: Value | None, paper: Printed | None = None) -> Cell:
    if value is None:
        return Cell(paper=paper.value, source=paper.source) if paper else Cell()
    repeats, episodes = (None if width is None else 100 * width for width in (value.over_repeats, value.over_episodes))
    beside, source = (paper.value, paper.source) if paper else (None, "")
    return Cell(100 * value.mean, repeats, episodes, beside, source)
