"""What mattered: accuracy on the validation classes against each setting, a point for each try."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from episodica.report.figures.canvas import PALETTE, grid, styled
from episodica.tune.axis import Axis, Choice
from episodica.tune.findings import Findings, paths_by_importance

ACROSS = 3


@styled
def what_mattered(findings: Findings, axes: Sequence[Axis]) -> Any:
    """The setting that mattered most first; tries that were stopped early are hollow, the best has a ring."""
    by_path = {axis.path: axis for axis in axes}
    columns = min(len(axes), ACROSS)
    figure, panels = grid(ceil(len(axes) / columns), columns, 3.2, 2.8, sharey=True)
    for axes_, path in zip(panels.flat, paths_by_importance(findings, list(by_path)), strict=False):
        _panel(axes_, findings, by_path[path])
    for axes_ in panels.flat[len(axes) :]:
        axes_.set_axis_off()
    for row in panels:
        row[0].set_ylabel("accuracy, %\n(validation classes)")
    return figure


def _panel(panel: Any, findings: Findings, axis: Axis) -> None:
    names = list(axis.values) if isinstance(axis, Choice) else None
    for tried in findings.tries:
        if tried.accuracy is None:
            continue
        value = tried.values[axis.path]
        at = value if names is None else names.index(value)
        finished = tried.state == "finished"
        panel.plot(at, 100 * tried.accuracy, "o", color=PALETTE[1], fillstyle="full" if finished else "none")
        if tried == findings.best:
            panel.plot(at, 100 * tried.accuracy, "o", color=PALETTE[0], fillstyle="none", markersize=11)
    if isinstance(axis, Choice):
        panel.set_xticks(range(len(axis.values)), list(map(str, axis.values)))
    elif axis.log:
        panel.set_xscale("log")
    share = findings.mattered.get(axis.path)
    panel.set(title=axis.path if share is None else f"{axis.path}: {share:.0%} of the difference", xlabel=axis.path)
