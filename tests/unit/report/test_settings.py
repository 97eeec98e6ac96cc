"""Which lines stand in one table, and whose bound they are measured against."""

import pytest

from episodica.report.settings import by_setting, tags
from episodica.report.tables import accuracy_table

FEW = {"stream.tasks": 2, "train.episodes": 60, "eval.episodes": 40}  # as many steps as MANY
MANY = {"stream.tasks": 3, "train.episodes": 40}


def test_settings_are_apart_and_bounds_come_last(make_run):
    first, second = by_setting(
        [make_run("joint"), make_run("erd"), make_run("ft"), make_run("ft", **{"train.lr": 0.1})]
    )
    assert [line.name for line in first] == ["ft", "erd", "joint"]
    assert [line.name for line in second] == ["ft"]


def test_headings_name_what_sets_settings_apart(make_run):
    """The default goes without saying, and so does what all have in common."""
    same = {"eval.mirrored": True}
    changes = ({}, {"train.lr": 0.003}, {"train.decay": 0.3}, {"train.lr": 0.003, "train.decay": 0.3})
    settings = by_setting([make_run("ft", **same, **change) for change in changes])
    beside = [part[0].config for part in settings]
    common = tags(beside[0])
    assert all(tags(config) == common for config in beside)
    apart = [tags(config, beside)[len(common) :] for config in beside]
    assert apart == [(), ("train.lr 0.003",), ("train.decay 0.3",), ("train.lr 0.003", "train.decay 0.3")]


def test_headings_say_nothing_twice(make_run):
    other = {"stream.tasks": 2, "shape.shots": 2, "train.epochs": 8, "train.episodes": 60, "scale": 0.5}
    beside = [part[0].config for part in by_setting([make_run("ft"), make_run("ft", **other)])]
    assert [tags(config, beside) for config in beside] == [tags(config) for config in beside]


def test_headings_tell_training_with_one_shot_from_training_with_five(make_run):
    """Where both are evaluated with both, titles are the same."""
    both = {"eval.shots": [1, 5]}
    beside = [make_run("ft", **both)[0], make_run("ft", **both, **{"shape.shots": 5})[0]]
    found = [[tag for tag in tags(config, beside) if tag.startswith("trained")] for config in beside]
    assert found == [["trained 3-way 1-shot"], ["trained 3-way 5-shot"]]


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
