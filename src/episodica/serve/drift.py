"""Whether what is asked lately is like what the model was tried on.

Images that are asked for are compared with those that the model was made of, each left out in turn, by how strange they
are for their likeliest class. The distance of the two distributions is that of Kolmogorov and Smirnov: the largest
difference between the shares of images below any value. It has moved where chance alone would give as much once in a
thousand times, and where it is large enough to matter.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

import numpy as np

WEEK = 7 * 24 * 3600.0  # seconds
MOST = 20_000  # images that are remembered
FEWEST = 30  # images on either side that anything is said about
MATTERS = 0.2
RARE = 1.95  # of Smirnov's limiting distribution: exceeded by chance once in a thousand times


class Distance(NamedTuple):
    value: float | None  # none where there are too few images
    images: int
    moved: bool

    @property
    def warning(self) -> str | None:
        if not self.moved:
            return None
        return (
            f"The last {self.images:,} images are unlike those that the model was tried on (distance {self.value:.2f} "
            "of 1): look at its answers, and teach it some of them."
        )


@dataclass
class Drift:
    """The strangeness of images asked in the last week, for one state of the model."""

    clock: Callable[[], float] = time.time
    mark: str = ""  # changes when there is news about it
    _state: str = ""
    _asked: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=MOST))

    _lock: Lock = field(default_factory=Lock)  # noted by one thread, asked for by another

    def note(self, state: str, strangeness: Iterable[float]) -> None:
        with self._lock:
            if state != self._state:
                self._state = state
                self._asked.clear()
            self._asked.extend((self.clock(), value) for value in strangeness)

    def distance(self, state: str, held_out: np.ndarray | None) -> Distance:
        asked = self._of_last_week(state)
        if held_out is None or min(len(asked), len(held_out)) < FEWEST:
            self.mark = ""
            return Distance(None, len(asked), moved=False)
        value = smirnov(asked, held_out)
        by_chance = RARE * ((len(asked) + len(held_out)) / (len(asked) * len(held_out))) ** 0.5
        moved = value > max(by_chance, MATTERS)
        self.mark = "-moved" if moved else ""
        return Distance(value, len(asked), moved)

    def _of_last_week(self, state: str) -> np.ndarray:
        since = self.clock() - WEEK
        with self._lock:
            while self._asked and self._asked[0][0] < since:
                self._asked.popleft()
            return np.array([value for _, value in self._asked] if state == self._state else [])


def smirnov(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of the two shares of values up to any value."""
    one, other = np.sort(one), np.sort(other)
    every = np.concatenate([one, other])
    shares = [np.searchsorted(values, every, side="right") / len(values) for values in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())
