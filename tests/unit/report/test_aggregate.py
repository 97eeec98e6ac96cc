"""Means over seeds, and which runs make a line together."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.report.aggregate import STUDENT, Value, lines


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_value_is_the_mean_with_students_interval(means):
    value = Value.of(means, 0.1)
    assert value.mean == pytest.approx(statistics.fmean(means))
    assert value.over_episodes == 0.1
    if len(means) == 1:
        assert value.over_seeds is None
    else:
        quantile = STUDENT[len(means) - 2] if len(means) <= 16 else 1.96
        expected = quantile * statistics.stdev(means) / math.sqrt(len(means))
        assert value.over_seeds == pytest.approx(expected, abs=1e-9)


def test_quantiles_fall_towards_the_normal_one():
    assert list(STUDENT) == sorted(STUDENT, reverse=True)
    assert STUDENT[-1] > 1.96


def test_seeds_of_one_setting_are_one_line(make_run):
    runs = [make_run("ft", 0.5, seed=1), make_run("erd"), make_run("ft", 0.6), make_run("ft", 0.4, **{"train.lr": 0.1})]
    found = lines(runs)
    assert [line.name for line in found] == ["ft lr=0.001", "erd", "ft lr=0.1"]
    assert [line.seeds for line in found] == [[0, 1], [0], [0]]


def test_a_line_has_what_all_its_seeds_have(make_run):
    (line,) = lines([make_run("ft", 0.5, seed=1), make_run("ft", 0.6)])
    first = line.at(1, "meta_test")
    assert first is not None
    assert first.mean == pytest.approx(0.55)
    assert first.over_seeds == pytest.approx(12.706 * 0.05, rel=1e-3)
    assert line.at(9, "meta_test") is None
    average = line.average("seen")
    assert average is not None
    assert average.mean == pytest.approx(0.551)


def test_an_unfinished_seed_leaves_a_gap(make_run):
    done, (config, results) = make_run("ft"), make_run("ft", seed=1)
    short = results.model_copy(update={"sessions": results.sessions[:1], "status": "running"})
    (line,) = lines([done, (config, short)])
    assert line.at(1, "seen") is not None
    assert line.at(2, "seen") is None
    assert line.average("seen") is None


def test_a_bound_stands_at_the_end_of_the_stream(make_run):
    (line,) = lines([make_run("joint", 0.7)])
    last = line.at(line.config.stream.tasks, "seen")
    assert last is not None
    assert last.mean == pytest.approx(0.7)
    assert line.at(1, "seen") is None
    assert line.average("seen") is None
