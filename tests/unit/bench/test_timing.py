"""The maths of the rounds, on a clock that moves only when a case says so."""

from collections.abc import Callable

import pytest

from episodica.bench.timing import Case, Effort, interleaved, peak


class Fake:
    """A clock, and cases whose calls take the seconds of a list, one after another."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def case(self, name: str, *seconds: float, gflop: float | None = None, stands_for: float = 1) -> Case:
        left = list(seconds)

        def run() -> None:
            self.order.append(name)
            self.now += left.pop(0)

        return Case(name, run, gflop, stands_for)


@pytest.fixture
def clock() -> Fake:
    return Fake()


def test_rounds_are_interleaved_and_the_first_call_of_a_turn_does_not_count(clock: Fake) -> None:
    cases = [clock.case("a", 100, 1, 3, 100, 5, 7), clock.case("b", 100, 2, 2, 100, 4, 4)]
    a, b = interleaved(cases, Effort(rounds=2, steps=2, clock=clock))
    assert clock.order == ["a", "a", "a", "b", "b", "b"] * 2
    assert a.rounds == [2000, 6000]
    assert b.rounds == [2000, 4000]
    assert (a.ms, b.ms) == (4000, 3000)
    assert a.ratio is a.of_peak is None


def test_the_ratio_is_taken_within_each_round_and_then_the_median(clock: Fake) -> None:
    cases = [clock.case("slow", 8, 4, 90), clock.case("fast", 2, 2, 10)]
    slow, fast = interleaved(cases, Effort(3, 1, clock), reference="slow", warm=0)
    assert slow.ratio == 1
    assert fast.ratio == 4  # of 4, 2 and 9; the ratio of the medians would be 4 too, of the means 7.3


def test_a_slow_round_of_the_machine_changes_no_ratio(clock: Fake) -> None:
    cases = [clock.case("slow", 8, 80, 800), clock.case("fast", 2, 20, 200)]
    assert interleaved(cases, Effort(3, 1, clock), reference="slow", warm=0)[1].ratio == 4


def test_a_sample_stands_for_the_whole(clock: Fake) -> None:
    (row,) = interleaved([clock.case("sample", 3, stands_for=100)], Effort(1, 1, clock), warm=0)
    assert row.ms == 300_000


def test_the_peak_is_the_best_convolution_of_the_same_round(clock: Fake) -> None:
    step = clock.case("step", 2, 4, 4, gflop=10)
    convolutions = [clock.case("x", 1, 2, 1, gflop=10), clock.case("y", 4, 1, 8, gflop=8)]
    rows = interleaved([step], Effort(3, 1, clock), reference="step", convolutions=convolutions, warm=0)
    assert [row.name for row in rows] == ["step", "x", "y"]
    # 5 of 10, 2.5 of 8 and 2.5 of 10 GFLOP/s
    assert [row.of_peak for row in rows] == pytest.approx([0.3125, 1, 0.2])
    assert [row.ratio for row in rows] == [1, None, None]


def test_a_case_without_arithmetic_has_no_share_of_the_peak(clock: Fake) -> None:
    rows = interleaved([clock.case("a", 1)], Effort(1, 1, clock), convolutions=[clock.case("x", 1, gflop=1)], warm=0)
    assert [row.of_peak for row in rows] == [None, 1]


def test_names_are_unique(clock: Fake) -> None:
    with pytest.raises(AssertionError, match="one name"):
        interleaved([clock.case("a", 1), clock.case("a", 1)], Effort(1, 1, clock), warm=0)


def test_peak() -> None:
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    assert peak([Case("x", nothing, 10), Case("y", nothing, 8)], {"x": 2, "y": 1}) == 8


def test_a_shorter_effort_keeps_rounds_and_clock_and_at_least_a_step(clock: Fake) -> None:
    assert Effort(5, 8, clock).shorter(4) == Effort(5, 2, clock)
    assert Effort(5, 3, clock).shorter(4) == Effort(5, 1, clock)
