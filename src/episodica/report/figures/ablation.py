"""An ablation in two panels: meta-test accuracy by session, as the paper draws it, and at the end against the field."""

from collections.abc import Sequence
from typing import Any

from episodica.report.ablation import Ablation
from episodica.report.aggregate import Line
from episodica.report.comparison import METRICS
from episodica.report.figures.canvas import INK, colours, grid, styled
from episodica.report.figures.curves import legend, panel

METRIC = "meta_test"
WIDE = 40  # letters that fit below a panel


@styled
def ablation_curves(ablation: Ablation, references: Sequence[Line]) -> Any:
    """References (other methods and bounds) are lines across; at the end, bars are the intervals of the tables."""
    figure, panels = grid(1, 2, 4.6, 3.6, sharey=True)
    left, right = panels[0]
    bounds = [line for line in references if line.bound]
    panel(left, [*ablation.lines, *bounds], METRIC)
    left.set_title(f"{METRICS[METRIC]}, by session")
    left.set_ylabel("accuracy, %")
    _at_the_end(right, ablation, references)
    legend(figure, [left], shown={line.name: value for value, line in ablation.members})
    return figure


def _at_the_end(axes: Any, ablation: Ablation, references: Sequence[Line]) -> None:
    found = [(place, line.at(line.last, METRIC)) for place, line in enumerate(ablation.lines)]
    drawn = [(place, value) for place, value in found if value is not None]
    at, means = [place for place, _ in drawn], [100 * value.mean for _, value in drawn]
    widths = [100 * (value.interval or 0) for _, value in drawn]
    joined = "-" if ablation.numeric else "none"
    axes.errorbar(at, means, yerr=widths, color=INK, marker="o", markersize=5, capsize=3, linestyle=joined)
    for line, shade in zip(references, colours(references), strict=True):
        value = line.at(line.last, METRIC)
        if value is not None:
            axes.axhline(100 * value.mean, color=shade, linestyle="--", linewidth=1.2)
            axes.annotate(
                line.name, (1, 100 * value.mean), xycoords=("axes fraction", "data"), xytext=(4, 0),
                textcoords="offset points", va="center", fontsize=8, color=shade, annotation_clip=False,
            )  # fmt: skip
    values = [value for value, _ in ablation.members]
    crowded = sum(map(len, values)) > WIDE
    axes.set_xticks(range(len(found)), values, rotation=25 if crowded else 0, ha="right" if crowded else "center")
    axes.set_xlim(-0.5, len(found) - 0.5)
    axes.set(title=f"{METRICS[METRIC]}, after the last session", xlabel=ablation.family.heading)
