"""Time left is what a constant speed gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.records.time_left import Pace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_nobody_knows_at_the_beginning() -> None:
    pace = Pace(["a", "b"], Clock())
    assert pace.left("a") is pace.left_of_all() is None
    pace.reach("a", 0.0)
    assert pace.left("a") is pace.left_of_all() is None


@given(st.floats(1, 1000), st.floats(0, 0.9), st.floats(0.01, 0.99), st.integers(0, 5))
def test_runs_of_constant_speed(seconds: float, first: float, part: float, waiting: int) -> None:
    """A run that was continued at `first` is `part` of the rest of its way; others wait, one after another."""
    clock = Clock()
    pace = Pace(["a", *map(str, range(waiting))], clock)
    pace.reach("a", first)
    now = first + part * (1 - first)
    clock.now = (now - first) * seconds
    pace.reach("a", now)
    assert pace.left("a") == pytest.approx((1 - now) * seconds)
    assert pace.left_of_all() == pytest.approx((1 - now + waiting) * seconds)


def test_runs_side_by_side_share_the_time() -> None:
    clock = Clock()
    pace = Pace("abcd", clock)
    pace.reach("a", 0)
    pace.reach("b", 0)
    clock.now = 10
    pace.end("a")  # it made no step that anybody saw
    pace.reach("b", 0.5)
    assert pace.done == 1.5
    assert pace.left("b") == 10
    assert pace.left_of_all() == pytest.approx(2.5 * 10 / 0.5)
    pace.reach("b", 1)
    pace.end("b")
    clock.now = 20
    pace.reach("c", 0)
    clock.now = 30
    pace.reach("c", 0.5)
    assert pace.left_of_all() == pytest.approx(1.5 * 30 / 1.5)


def test_what_was_finished_before_is_no_gain_and_a_new_worker_starts_its_own_way() -> None:
    clock = Clock()
    pace = Pace("ab", clock)
    pace.end("a")
    pace.reach("b", 0.5)
    clock.now = 10
    pace.reach("b", 0.75)
    assert pace.left_of_all() == pytest.approx(10)
    pace.reach("b", 0.25)
    assert pace.left("b") is None
    clock.now = 30
    pace.reach("b", 0.5)
    assert pace.left("b") == pytest.approx(40)
