"""Forgetting by session."""

from collections.abc import Sequence
from typing import Any

from episodica.report.aggregate import Line
from episodica.report.figures.canvas import INK, colours, grid, styled
from episodica.report.figures.curves import count_sessions, legend


@styled
def forgetting(lines: Sequence[Line]) -> Any:
    """Points lost on earlier tasks since they were known best; below zero they have become better."""
    figure, panels = grid(1, 1, 6.0, 3.4)
    axes = panels[0][0]
    shown = [line for line in lines if not line.bound]
    for line, shade in zip(shown, colours(shown), strict=True):
        found = [(s, 100 * v.mean) for s in range(2, line.last + 1) if (v := line.forgetting(s)) is not None]
        if found:
            at, lost = zip(*found, strict=True)
            axes.plot(at, lost, color=shade, marker="o", markersize=3.5, label=line.name)
    axes.axhline(0, color=INK, linewidth=0.8)
    count_sessions(axes, max((line.last for line in shown), default=1))
    axes.set_ylabel("forgetting, points")
    legend(figure, [axes])
    return figure
