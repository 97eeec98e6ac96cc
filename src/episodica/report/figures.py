"""Pictures of results. Needs matplotlib: `pip install episodica[report]`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from episodica.errors import InputError
from episodica.records.table import Run, is_bound, labels

PALETTE = (
    "#d55e00",
    "#0072b2",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f7f7f",
)  # readable by the colour-blind


def curves(runs: Sequence[Run], path: Path, title: str) -> None:
    """Meta-test and seen accuracy by session, a line a run, with the joint bound as a dashed line."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("pictures need matplotlib: pip install 'episodica[report]'") from None
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    names = labels([config for config, _ in runs])
    for panel, metric, heading in zip(
        panels,
        ("meta_test", "seen"),
        ("unseen classes (meta-test)", "seen classes (mean of tasks)"),
        strict=True,
    ):
        panel.set_title(heading, fontsize=10)
        panel.set_xlabel("session")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        for i, (config, results) in enumerate(runs):
            colour = PALETTE[i % len(PALETTE)]
            _line(panel, results.sessions, metric, names[config.run_id], colour, is_bound(config))
        last = max((len(results.sessions) for _, results in runs), default=1)
        panel.set_xticks(range(1, last + 1) if last <= 16 else range(0, last + 1, max(last // 8, 1)))
    shape = runs[0][1].shape
    panels[0].set_ylabel(f"{shape['way']}-way {shape['shots']}-shot accuracy, %")
    panels[1].legend(frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=150)


def _line(panel: Any, sessions: Sequence[Any], metric: str, name: str, colour: str, bound: bool) -> None:
    values = [getattr(row, metric) for row in sessions]
    means, widths = [100 * v.mean for v in values], [100 * v.ci95 for v in values]
    if bound and means:
        panel.axhline(means[-1], color=colour, linestyle="--", linewidth=1.4, label=name)
        panel.axhspan(means[-1] - widths[-1], means[-1] + widths[-1], color=colour, alpha=0.12, linewidth=0)
    else:
        at = [row.session for row in sessions]
        panel.errorbar(at, means, yerr=widths, color=colour, marker="o", markersize=4, capsize=2, label=name)
