"""Result tables in the paper's form as Markdown, the paper's number beside ours."""

from collections.abc import Sequence

from episodica.report.aggregate import Line, Value
from episodica.report.paper import paper_gap, paper_number

METRICS = {"meta_test": "Unseen classes (meta-test)", "seen": "Seen classes (mean of the tasks)"}


def accuracy_table(lines: Sequence[Line], metric: str) -> str:
    """A line a method: sessions 2, 4, 8, ..., the average of all sessions, and the gap to joint at the last."""
    last = max(line.config.stream.tasks for line in lines)
    shown = [s for s in range(2, last + 1) if s & (s - 1) == 0 or s == last]
    rows = [["method", "seeds", *map(str, shown), "avg", "gap to joint"]]
    for line in lines:
        run = line.runs[0]
        cells = [_cell(line.at(s, metric), paper_number(run, metric, s)) for s in shown]
        average = _cell(line.average(metric), paper_number(run, metric, "avg"))
        paper = paper_gap(run) if metric == "meta_test" else None
        rows.append([line.name, _seeds(line), *cells, average, _plain(gap_to_joint(line, lines, metric), paper)])
    return _markdown(rows)


def gap_to_joint(line: Line, lines: Sequence[Line], metric: str) -> float | None:
    """Points that a line is below its bound after the last session; of several bounds the one with most episodes."""
    bounds = [other for other in lines if other.bound and other.setting == line.setting]
    bound = max(bounds, key=lambda other: other.config.train.episodes_per_step, default=None)
    if bound is None or line.bound:
        return None
    own, reached = (part.at(line.config.stream.tasks, metric) for part in (line, bound))
    return None if own is None or reached is None else 100 * (reached.mean - own.mean)


def _seeds(line: Line) -> str:
    return str(len(line.runs)) if line.finished else f"{len(line.runs)}, unfinished"


def _cell(value: Value | None, paper: float | None) -> str:
    if value is None:
        return ""
    over = value.over_seeds if value.over_seeds is not None else value.over_episodes
    interval = "" if over is None else f" ± {100 * over:.1f}"
    return f"{100 * value.mean:.1f}{interval}" + ("" if paper is None else f" ({paper:.1f})")


def _plain(value: float | None, paper: float | None) -> str:
    return "" if value is None else f"{value:.1f}" + ("" if paper is None else f" ({paper:.1f})")


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    heading, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([heading, "|---" * len(rows[0]) + "|", *body]) + "\n"
