"""How long runs still take, from how far they have come since somebody began to look."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass
class Way:
    """Of one run: shares of its steps, and seconds."""

    first: float
    since: float
    now: float

    @property
    def gained(self) -> float:
        return self.now - self.first


class Pace:
    """Each run counts as much as every other; what was done before is no gain."""

    def __init__(self, runs: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._waiting, self._clock = set(runs), clock
        self._ways: dict[str, Way] = {}
        self._gained = 0.0  # by runs that have ended
        self._ended = 0
        self._began: float | None = None

    def reach(self, run: str, share: float) -> None:
        """A run is so far, from 0 to 1; a replaced worker may be behind the one before."""
        now = self._clock()
        if run not in self._ways or share < self._ways[run].now:
            self._ways[run] = Way(share, now, share)
        self._ways[run].now = share
        self._waiting.discard(run)
        self._began = now if self._began is None else self._began

    def end(self, run: str) -> None:
        """A run is finished, failed, or was finished before."""
        self._waiting.discard(run)
        self._ended += 1
        way = self._ways.pop(run, None)
        self._gained += way.gained if way else 0

    @property
    def done(self) -> float:
        """Runs, with the parts of those at work."""
        return self._ended + sum(way.now for way in self._ways.values())

    def left(self, run: str) -> float | None:
        """Seconds, where there is anything to go by."""
        way = self._ways.get(run)
        if way is None or way.gained <= 0:
            return None
        return (1 - way.now) * (self._clock() - way.since) / way.gained

    def left_of_all(self) -> float | None:
        gained = self._gained + sum(way.gained for way in self._ways.values())
        if gained <= 0 or self._began is None:
            return None
        rest = len(self._waiting) + sum(1 - way.now for way in self._ways.values())
        return rest * (self._clock() - self._began) / gained
