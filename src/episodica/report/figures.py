"""Pictures of results. Needs matplotlib: `pip install episodica[report]`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from episodica.errors import InputError
from episodica.report.aggregate import Line

PALETTE = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b")  # readable by the colour-blind
BOUNDS = ("#9a9a9a", "#3a3a3a")
PANELS = {"meta_test": "unseen classes (meta-test)", "seen": "seen classes (mean of tasks)"}


def curves(lines: Sequence[Line], paths: Sequence[Path], title: str) -> None:
    """Meta-test and seen accuracy by session, a line a method, with the joint bound as a dashed line."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'episodica[report]'") from None
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    last = max((line.config.stream.tasks for line in lines if not line.bound), default=1)
    for panel, (metric, heading) in zip(panels, PANELS.items(), strict=True):
        panel.set_title(heading, fontsize=10)
        panel.set_xlabel("session")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        counts = {True: 0, False: 0}
        for line in lines:
            colours = BOUNDS if line.bound else PALETTE
            _draw(panel, line, metric, colours[counts[line.bound] % len(colours)])
            counts[line.bound] += 1
        panel.set_xticks(range(1, last + 1) if last <= 16 else range(0, last + 1, max(last // 8, 1)))
    shape = lines[0].config.shape
    panels[0].set_ylabel(f"{shape.way}-way {shape.shots}-shot accuracy, %")
    panels[1].legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.suptitle(title, fontsize=11)
    for path in paths:
        figure.savefig(path, dpi=150)


def _draw(panel: Any, line: Line, metric: str, colour: str) -> None:
    """Error bars are over episodes for one seed; for several the seeds are thin lines behind their mean."""
    found = [(s, v) for s in range(1, line.config.stream.tasks + 1) if (v := line.at(s, metric)) is not None]
    if not found:
        return
    at, means = [s for s, _ in found], [100 * v.mean for _, v in found]
    widths = [100 * (v.over_episodes or 0) for _, v in found]
    if line.bound:
        panel.axhline(means[-1], color=colour, linestyle="--", linewidth=1.4, label=line.name)
        panel.axhspan(means[-1] - widths[-1], means[-1] + widths[-1], color=colour, alpha=0.12, linewidth=0)
        return
    panel.errorbar(at, means, yerr=widths, color=colour, marker="o", markersize=4, capsize=2, label=line.name)
    for _, results in line.runs if len(line.runs) > 1 else ():
        own = [100 * getattr(row, metric).mean for row in results.sessions]
        panel.plot(range(1, len(own) + 1), own, color=colour, linewidth=0.6, alpha=0.5)
