"""What the bars of an ablation mean."""

import pytest

from episodica.report.ablation import ablations
from episodica.report.figures.ablation import METRIC, ablation_curves
from episodica.report.settings import by_setting
from episodica.report.tables import accuracy_table


def test_bars_at_the_end_are_the_intervals_of_the_table(make_run):
    """One variant was repeated and one was not."""
    starts = {(0.2, 0): 0.4, (0.2, 1): 0.5, (0.4, 0): 0.45}
    changes = [{"shape.way": 5, "method.p": p, "seed": seed} for p, seed in starts]
    (lines,) = by_setting([make_run("erd", at, **own) for at, own in zip(starts.values(), changes, strict=True)])
    ((ablation,), _) = ablations(lines)
    _, right = ablation_curves(ablation, []).axes
    bars = [tops[1] - bottoms[1] for bottoms, tops in right.containers[0].lines[2][0].get_segments()]
    shown = [row.cells[2].interval for row in accuracy_table(ablation.lines, METRIC).rows]
    assert shown[0] == pytest.approx(12.706 * 5)
    assert [bar / 2 for bar in bars] == pytest.approx(shown)
