"""Time left is what a constant speed gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.records.time_left import GridPosition


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_is_not_known_at_the_beginning() -> None:
    grid = GridPosition(["a", "b"], Clock())
    assert grid.seconds_left is None
    grid.reach("a", 0.0)
    assert grid.seconds_left is None


@given(st.floats(1, 1000), st.floats(0, 0.9), st.floats(0.01, 0.99), st.integers(0, 5))
def test_runs_of_constant_speed(seconds: float, first: float, part: float, waiting: int) -> None:
    """A run that was continued at `first` is `part` of the rest of its way; others wait, one after another."""
    clock = Clock()
    grid = GridPosition(["a", *map(str, range(waiting))], clock)
    grid.reach("a", first)
    now = first + part * (1 - first)
    clock.now = (now - first) * seconds
    grid.reach("a", now)
    assert grid.seconds_left == pytest.approx((1 - now + waiting) * seconds)


def test_runs_side_by_side_share_the_time() -> None:
    clock = Clock()
    grid = GridPosition("abcd", clock)
    grid.reach("a", 0)
    grid.reach("b", 0)
    clock.now = 10
    grid.end("a")  # without a step that was seen
    grid.reach("b", 0.5)
    assert grid.done == 1.5
    assert grid.seconds_left == pytest.approx(2.5 * 10 / 0.5)
    grid.reach("b", 1)
    grid.end("b")
    clock.now = 20
    grid.reach("c", 0)
    clock.now = 30
    grid.reach("c", 0.5)
    assert grid.seconds_left == pytest.approx(1.5 * 30 / 1.5)


def test_what_was_finished_before_is_no_gain_and_a_new_worker_starts_its_own_way() -> None:
    clock = Clock()
    grid = GridPosition("ab", clock)
    grid.end("a")
    grid.reach("b", 0.5)
    clock.now = 10
    grid.reach("b", 0.75)
    assert grid.seconds_left == pytest.approx(10)
    grid.reach("b", 0.25)
    assert grid.seconds_left is None
    clock.now = 30
    grid.reach("b", 0.5)
    assert grid.seconds_left == pytest.approx(0.5 * 30 / 0.25)
