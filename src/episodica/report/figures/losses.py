"""Training curves: every loss term over the steps of a run, from its `events.jsonl`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from math import ceil
from typing import Any

from episodica.files.door import Folder, Refused
from episodica.files.parsing import parse_json
from episodica.records.run import EVENTS
from episodica.report.figures.canvas import INK, PALETTE, grid, styled

ACROSS = 3
MOST_EVENTS, MOST_LINE = 2**29, 2**20  # bytes that are read
POINTS = 320  # of a curve; more are averaged


@dataclass
class Losses:
    """Terms as they were logged, over the steps of all sessions, and where the sessions begin."""

    terms: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    begins: list[float] = field(default_factory=list)
    unreadable: int = 0  # lines


def read_losses(folder: Folder) -> Losses:
    found, done, last = Losses(), 0, 0
    for line in _lines(folder):
        try:
            event = parse_json(line)
            if event["event"] == "session":
                done += last
                last = 0
                found.begins.append(done)
            elif event["event"] == "step":
                last = event["step"]
                for name, value in event["loss"].items():
                    steps, values = found.terms.setdefault(str(name), ([], []))
                    values.append(float(value))
                    steps.append(done + last)
        except (ValueError, KeyError, TypeError, AttributeError):
            found.unreadable += 1
    return found


def _lines(folder: Folder) -> Iterator[bytes]:
    """As many as a report has room for; none where there is no log, or something else in its place."""
    try:
        file = folder.open(EVENTS)
    except (OSError, Refused):
        return
    with file:
        while file.tell() < MOST_EVENTS and (line := file.readline(MOST_LINE)):
            yield line


@styled
def loss_curves(runs: Sequence[tuple[str, Losses]]) -> Any:
    """A panel a run; thin upright lines are where sessions begin."""
    columns = min(len(runs), ACROSS)
    figure, panels = grid(ceil(len(runs) / columns), columns, 3.6, 2.7)
    for axes in panels.flat[len(runs) :]:
        axes.set_axis_off()
    for axes, (name, losses) in zip(panels.flat, runs, strict=False):
        for begin in losses.begins[1:]:
            axes.axvline(begin, color=INK, linewidth=0.5, alpha=0.2)
        for (term, (steps, values)), shade in zip(losses.terms.items(), cycle(PALETTE), strict=False):
            axes.plot(*averaged(steps, values), color=shade, linewidth=1, label=term)
        axes.set(title=name, xlabel="step", yscale="symlog" if _near_zero(losses) else "log")
        axes.legend(fontsize=7.5, loc="upper right")
        axes.tick_params(axis="y", which="minor", labelleft=False)
    panels[0][0].set_ylabel("loss term, weighted")
    return figure


def averaged(steps: Sequence[float], values: Sequence[float], points: int = POINTS) -> tuple[list[float], list[float]]:
    """Means over equal stretches: at most `points` of them."""
    width = ceil(len(steps) / points) or 1
    parts = [slice(begin, begin + width) for begin in range(0, len(steps), width)]
    means = [[sum(row[part]) / len(row[part]) for part in parts] for row in (steps, values)]
    return means[0], means[1]


def _near_zero(losses: Losses) -> bool:
    return any(value <= 0 for _, values in losses.terms.values() for value in values)
