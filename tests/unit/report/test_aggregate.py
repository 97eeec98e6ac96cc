"""Means over seeds and orders against the textbook, and which runs make a line together."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.report.aggregate import STUDENT, Value, gap_to_joint, lines, student

ORDER = "stream.seed"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_value_is_the_mean_with_students_interval(means):
    value = Value.of(means, 0.1)
    assert value.mean == pytest.approx(statistics.fmean(means))
    assert value.over_episodes == 0.1
    if len(means) == 1:
        assert value.over_repeats is None
    else:
        expected = student(len(means) - 1) * statistics.stdev(means) / math.sqrt(len(means))
        assert value.over_repeats == pytest.approx(expected, abs=1e-9)


def test_students_interval_by_hand():
    """40, 42, 44: mean 42, standard deviation 2, and 4.303 x 2 / sqrt(3) = 4.968."""
    value = Value.of([40.0, 42.0, 44.0])
    assert (value.mean, value.over_repeats) == (42.0, pytest.approx(4.9687, abs=1e-3))


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (4, 2.776), (16, 2.120), (20, 2.086), (60, 2.000)])
def test_quantiles_are_those_of_the_printed_tables(freedom, quantile):
    assert student(freedom) == pytest.approx(quantile, abs=1e-3)


def test_quantiles_fall_towards_the_normal_one():
    found = [student(freedom) for freedom in range(1, 400)]
    assert found == sorted(found, reverse=True)
    assert found[len(STUDENT)] < STUDENT[-1]
    assert 1.96 < found[-1] < 1.97


def test_repeats_of_one_setting_are_one_line(make_run):
    runs = [make_run("ft", 0.5, seed=1), make_run("erd"), make_run("ft", 0.6), make_run("ft", 0.4, **{"train.lr": 0.1})]
    runs.append(make_run("erd", **{ORDER: 1}))
    found = lines(runs)
    assert [line.name for line in found] == ["ft lr=0.001", "erd", "ft lr=0.1"]
    assert [len(line.runs) for line in found] == [2, 2, 1]
    assert [line.repeats for line in found] == ["2 seeds", "2 orders x 1 seed", "1 seed"]


def test_a_choice_and_what_it_is_by_default_are_one_line(make_run):
    select, unused = {"memory.select": "ntc"}, {"memory.per_class": 5}
    runs = [make_run("erd"), make_run("erd", seed=1, **select), make_run("ft"), make_run("ft", seed=1, **unused)]
    assert [(line.name, line.repeats) for line in lines(runs)] == [("erd", "2 seeds"), ("ft", "2 seeds")]


def test_a_line_has_what_all_its_seeds_have(make_run):
    (line,) = lines([make_run("ft", 0.5, seed=1), make_run("ft", 0.6)])
    first = line.at(1, "meta_test")
    assert first is not None
    assert first.mean == pytest.approx(0.55)
    assert first.over_repeats == pytest.approx(12.706 * 0.05, rel=1e-3)
    assert line.at(9, "meta_test") is None
    average = line.average("seen")
    assert average is not None
    assert average.mean == pytest.approx(0.551)


def test_orders_are_what_repeats_where_there_are_several(make_run):
    """Order 0 has seeds 0.5 and 0.6, order 1 has 0.7: the mean of 0.55 and 0.7, Student's t over the two."""
    (line,) = lines([make_run("ft", 0.5), make_run("ft", 0.6, seed=1), make_run("ft", 0.7, **{ORDER: 1})])
    value = line.at(1, "seen")
    assert value is not None
    assert value.mean == pytest.approx((0.55 + 0.7) / 2)
    assert value.over_repeats == pytest.approx(12.706 * statistics.stdev([0.55, 0.7]) / math.sqrt(2))


def test_intervals_over_episodes_shrink_with_orders_only(make_run):
    def with_width(run, width):
        config, results = run
        rows = [
            row.model_copy(update={"seen": row.seen.model_copy(update={"ci95": width})}) for row in results.sessions
        ]
        return config, results.model_copy(update={"sessions": rows})

    seeds = [with_width(make_run("ft", 0.5), 0.02), with_width(make_run("ft", 0.5, seed=1), 0.04)]
    (line,) = lines(seeds)
    value = line.at(1, "seen")
    assert value is not None
    assert value.over_episodes == pytest.approx(0.03)
    (line,) = lines([*seeds, with_width(make_run("ft", 0.5, **{ORDER: 1}), 0.04)])
    value = line.at(1, "seen")
    assert value is not None
    assert value.over_episodes == pytest.approx(0.05 / 2)


def test_unfinished_runs_are_named_and_not_in_the_mean(make_run):
    done, (config, results) = make_run("ft", 0.5), make_run("ft", 0.9, seed=1)
    short = results.model_copy(update={"sessions": results.sessions[:1], "status": "running"})
    (line,) = lines([done, (config, short)])
    value = line.at(3, "seen")
    assert value is not None
    assert value.mean == pytest.approx(0.502)
    assert line.repeats == "1 seed; 1 more unfinished"


def test_a_line_without_a_finished_run_shows_how_far_it_got(make_run):
    config, results = make_run("ft")
    (line,) = lines([(config, results.model_copy(update={"sessions": results.sessions[:2], "status": "running"}))])
    assert line.at(2, "seen") is not None
    assert line.at(3, "seen") is None
    assert line.average("seen") is None
    assert line.repeats == "1 seed, unfinished"


def test_a_bound_stands_at_the_end_of_the_stream(make_run):
    (line,) = lines([make_run("joint", 0.7)])
    last = line.at(line.last, "seen")
    assert last is not None
    assert last.mean == pytest.approx(0.7)
    assert line.at(1, "seen") is None
    assert line.average("seen") is None
    assert line.forgetting(line.last) is None


def test_the_gap_is_taken_order_by_order(make_run):
    ours, bound = lines(
        [
            *(make_run("erd", start, **{ORDER: order}) for order, start in ((0, 0.5), (1, 0.4))),
            *(make_run("joint", start, **{ORDER: order}) for order, start in ((0, 0.6), (1, 0.7), (2, 0.9))),
        ]
    )
    gap = gap_to_joint(ours, bound, "seen")
    assert gap is not None
    assert gap.mean == pytest.approx(statistics.fmean([0.6 - 0.502, 0.7 - 0.402]))
    assert gap_to_joint(bound, ours, "seen") is None


def test_a_bound_of_other_orders_or_another_setting_is_none(make_run):
    ours, elsewhere, longer = lines(
        [make_run("erd"), make_run("joint", **{ORDER: 1}), make_run("joint", **{"train.epochs": 400})]
    )
    assert gap_to_joint(ours, elsewhere, "seen") is None
    assert gap_to_joint(ours, longer, "seen") is None
