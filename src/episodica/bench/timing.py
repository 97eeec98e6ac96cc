"""Rounds of named functions, one after another in one process, because the speed of a shared machine drifts.

Every round gives each case a turn. A case is compared with the reference, and with the best convolution, of its own
round; what is reported is the median over the rounds.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

Clock = Callable[[], float]
CLOCKS: dict[Literal["wall", "cpu"], Clock] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, calls in a turn, and the clock that counts."""

    rounds: int = 5
    steps: int = 8
    clock: Clock = time.perf_counter

    def shorter(self, by: int) -> "Effort":
        """Fewer calls in a turn, for functions that take longer."""
        return Effort(self.rounds, max(1, self.steps // by), self.clock)


@dataclass(frozen=True)
class Case:
    """A function to be timed. `gflop` is its useful arithmetic; `stands_for` how many calls one call is a sample of."""

    name: str
    run: Callable[[], object]
    gflop: float | None = None
    stands_for: float = 1.0


@dataclass(frozen=True)
class Row:
    """A case as measured: `ratio` is its speed in units of the reference, `of_peak` its share of the peak."""

    name: str
    ms: float
    ratio: float | None
    of_peak: float | None
    rounds: list[float] = field(default_factory=list)  # milliseconds of a call in each


def interleaved(
    cases: Sequence[Case],
    effort: Effort,
    *,
    reference: str | None = None,
    convolutions: Sequence[Case] = (),
    warm: int = 1,
) -> list[Row]:
    """Rows of the cases and then of the convolutions, which say what the machine can do.

    Each turn begins with `warm` calls that do not count: what the turn before left behind is not this one's.
    """
    everyone = [*cases, *convolutions]
    rounds = [{case.name: _turn(case, effort, warm) for case in everyone} for _ in range(effort.rounds)]
    assert len(rounds[0]) == len(everyone), "two cases of one name"
    return [_row(case, rounds, reference if case in cases else None, convolutions) for case in everyone]


def _turn(case: Case, effort: Effort, warm: int) -> float:
    """Seconds of a call."""
    for _ in range(warm):
        case.run()
    started = effort.clock()
    for _ in range(effort.steps):
        case.run()
    return (effort.clock() - started) / effort.steps * case.stands_for


def _row(case: Case, rounds: Sequence[dict[str, float]], reference: str | None, convolutions: Sequence[Case]) -> Row:
    seconds = [each[case.name] for each in rounds]
    ratio = of_peak = None
    if reference is not None:
        ratio = median(each[reference] / each[case.name] for each in rounds)
    if convolutions and case.gflop is not None:
        of_peak = median(case.gflop / each[case.name] / peak(convolutions, each) for each in rounds)
    return Row(case.name, 1e3 * median(seconds), ratio, of_peak, [1e3 * each for each in seconds])


def peak(convolutions: Sequence[Case], seconds: dict[str, float]) -> float:
    """GFLOP a second of the fastest of them."""
    return max(case.gflop / seconds[case.name] for case in convolutions if case.gflop is not None)
