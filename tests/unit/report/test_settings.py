"""Which lines stand in one table, and whose bound they are measured against."""

import pytest

from episodica.report.settings import by_setting
from episodica.report.tables import accuracy_table

FEW = {"stream.tasks": 2, "train.episodes": 60, "eval.episodes": 40}  # as many steps as MANY
MANY = {"stream.tasks": 3, "train.episodes": 40}


def test_settings_are_apart_and_bounds_come_last(make_run):
    first, second = by_setting(
        [make_run("joint"), make_run("erd"), make_run("ft"), make_run("ft", **{"train.lr": 0.1})]
    )
    assert [line.name for line in first] == ["ft", "erd", "joint"]
    assert [line.name for line in second] == ["ft"]


def test_a_bound_counts_for_every_stream_of_its_classes_on_unseen_ones(make_run):
    """As in the paper, which has one bound of Relation Networks for 4 and 16 tasks."""
    many, few = by_setting([make_run("ft", 0.5, **MANY), make_run("ft", 0.4, **FEW), make_run("joint", 0.7, **FEW)])
    assert [line.name for line in few] == ["ft", "joint"]
    assert [line.name for line in many] == ["ft", "joint of 2 tasks"]
    unseen, seen = (accuracy_table(many, metric) for metric in ("meta_test", "seen"))
    assert unseen.columns == ("1", "2", "3", "avg", "gap to joint")
    assert unseen.rows[0].cells[-1].value == pytest.approx(100 * (0.7 - 0.502))
    assert [cell.number for cell in unseen.rows[1].cells] == ["", "", "70.0", "", ""]
    assert [row.name for row in seen.rows] == ["ft"]
    assert "gap to joint" not in seen.columns


@pytest.mark.parametrize(
    "other", [{"train.episodes": 61}, {"train.lr": 0.1}, {"shape.shots": 2}, {"stream.unseen_classes": 7}]
)
def test_a_bound_of_other_training_or_other_questions_is_not_lent(make_run, other):
    for part in by_setting([make_run("ft", **MANY), make_run("joint", **{**FEW, **other})]):
        assert len(part) == 1


def test_a_bound_of_ones_own_is_preferred(make_run):
    many, _ = by_setting([make_run("ft", **MANY), make_run("joint", **MANY), make_run("joint", **FEW)])
    assert [line.name for line in many] == ["ft", "joint"]
