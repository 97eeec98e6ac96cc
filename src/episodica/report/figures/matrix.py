"""The accuracy matrix: each task (row) after each session (column)."""

from collections.abc import Sequence
from math import ceil, nan
from typing import Any

from episodica.report.aggregate import Line
from episodica.report.figures.canvas import grid, styled

ACROSS = 3
WRITTEN = 8  # tasks up to which the numbers stand in the cells


def matrix(line: Line) -> list[list[float]]:
    """Accuracy in %, [task][session]; not a number where a task was not learned yet or a session not reached."""
    sessions = range(1, line.last + 1)
    cells = [[line.of_task(task, session) for session in sessions] for task in sessions]
    return [[nan if value is None else 100 * value.mean for value in row] for row in cells]


@styled
def heat_maps(lines: Sequence[Line]) -> Any:
    """One a method, all on one scale: forgetting shows as rows that fade to the right."""
    shown = [line for line in lines if not line.bound]
    tables = [matrix(line) for line in shown]
    reached = [value for table in tables for row in table for value in row if value == value]
    if not reached:
        return None
    columns = min(len(shown), ACROSS)
    figure, panels = grid(ceil(len(shown) / columns), columns, 3.1, 3.0)
    image = None
    for axes in panels.flat[len(shown) :]:
        axes.set_axis_off()
    for axes, line, table in zip(panels.flat, shown, tables, strict=False):
        extent = (0.5, line.last + 0.5, line.last + 0.5, 0.5)
        image = axes.imshow(table, vmin=min(reached), vmax=max(reached), cmap="viridis", extent=extent)
        axes.grid(visible=False)
        axes.set(title=line.name, xlabel="session", ylabel="task")
        ticks = range(1, line.last + 1) if line.last <= WRITTEN else [1, *range(4, line.last + 1, 4)]
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
        if line.last <= WRITTEN:
            _write(axes, table, (min(reached) + max(reached)) / 2)
    figure.colorbar(image, ax=panels, shrink=0.8, label="accuracy, %")
    return figure


def _write(axes: Any, table: Sequence[Sequence[float]], middle: float) -> None:
    for task, row in enumerate(table, start=1):
        for session, value in enumerate(row, start=1):
            if value == value:
                shade = "white" if value < middle else "black"
                axes.text(session, task, f"{value:.0f}", ha="center", va="center", color=shade, fontsize=8)
