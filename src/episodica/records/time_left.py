"""How far runs are, and how long they still take: of one run by its events, of a grid by the shares of its runs."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from episodica.config import Schedule
from episodica.records.results import Session

RECENT = 12  # logged steps that the speed is taken over
MOST_SESSIONS = 10_000
GREATEST = 1e100  # sums of such numbers are numbers still


class RunPosition:
    """Where one run stands after the events so far. Damaged events raise and change nothing.

    Events say how many sessions and steps there are; those of 0.1.0 do not, so `schedule` may be given from the config.
    """

    def __init__(self) -> None:
        self.schedule: Schedule | None = None
        self.session = self.step = 0
        self.seconds = 0.0  # of training in the current session
        self.evaluated = 0  # pools of the current session
        self.results: dict[int, Session] = {}
        self.starts: list[int] = []  # steps taken before each session
        self._recent: deque[tuple[int, float]] = deque([(0, 0.0)], maxlen=RECENT)

    def on_event(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind not in ("session", "step", "evaluation", "result"):
            return
        session = count(event["session"], MOST_SESSIONS)
        step, seconds = (count(event["step"]), finite(event["seconds"])) if kind == "step" else (0, 0.0)
        result = finite_result(event) if kind == "result" else None
        schedule = (
            Schedule(count(event["sessions"], MOST_SESSIONS), count(event["steps"])) if "steps" in event else None
        )
        self.schedule = schedule or self.schedule
        self._enter(session)
        match kind:
            case "step":
                self.step, self.seconds = step, seconds
                self._recent.append((step, seconds))
            case "evaluation":
                self.evaluated += 1
            case "result":
                assert result is not None
                self.results[session] = result

    def _enter(self, session: int) -> None:
        if session == self.session:
            return
        if len(self.starts) > MOST_SESSIONS:
            raise ValueError(f"session {session} is one too many")
        self.starts.append(self.starts[-1] + self.step if self.starts else 0)
        self.session, self.step, self.seconds, self.evaluated = session, 0, 0.0, 0
        self._recent = deque([(0, 0.0)], maxlen=RECENT)

    @property
    def speed(self) -> float | None:
        """Steps a second, lately."""
        (first, began), (last, ended) = self._recent[0], self._recent[-1]
        return (last - first) / (ended - began) if last > first and ended > began else None

    @property
    def done(self) -> float | None:
        """The share of all steps that is taken, where their number is known."""
        if self.schedule is None or not self.schedule.steps:
            return None
        sessions, steps = self.schedule
        taken = max(self.session - 1, 0) * steps + self.step
        return min(taken / max(sessions * steps, 1), 1.0)

    @property
    def seconds_left(self) -> float | None:
        """Steps at the present speed, then evaluations at what a pool has cost; None before there is a speed."""
        speed = self.speed or self._speed_before
        if speed is None or self.schedule is None or not self.schedule.steps:
            return None
        sessions, steps = self.schedule
        steps_left = max(steps * (sessions - self.session + 1) - self.step, 0)
        return steps_left / speed + self._pools_left(sessions) * self._seconds_a_pool

    @property
    def _speed_before(self) -> float | None:
        """Of the session before, at the beginning of one."""
        result = self.results.get(self.session - 1)
        if result is None or len(self.starts) < 2 or not result.seconds_train:
            return None
        return (self.starts[-1] - self.starts[-2]) / result.seconds_train or None

    def _pools_left(self, sessions: int) -> int:
        """Each session is evaluated on the unseen classes and on all tasks so far."""
        pools = sum(1 + session for session in range(self.session, sessions + 1) if session not in self.results)
        return max(pools - (self.evaluated if self.session not in self.results else 0), 0)

    @property
    def _seconds_a_pool(self) -> float:
        pools = sum(1 + len(result.per_task) for result in self.results.values())
        return sum(result.seconds_eval for result in self.results.values()) / pools if pools else 0.0


def finite_result(values: Mapping[str, Any]) -> Session:
    result = Session.model_validate(values)
    numbers = (result.meta_test.mean, result.meta_test.ci95, result.seen.mean, result.seen.ci95, result.forgetting or 0)
    for number in (*numbers, result.seconds_train, result.seconds_eval):
        finite(number)
    count(result.session, MOST_SESSIONS)
    return result


def finite(value: Any) -> float:
    if not isinstance(value, int | float) or not isfinite(value) or abs(value) > GREATEST:
        raise ValueError(f"{value} is not a finite number")
    return float(value)


def count(value: Any, most: int = 1 << 40) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{value} does not count anything")
    return value


@dataclass
class Share:
    """Of the steps of one run, from 0 to 1: when it was first seen, and now."""

    first: float
    now: float

    @property
    def gained(self) -> float:
        return self.now - self.first


class GridPosition:
    """Where a grid of runs stands. Each run counts as much as every other; what was done before is no gain."""

    def __init__(self, runs: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._waiting, self._clock = set(runs), clock
        self._shares: dict[str, Share] = {}
        self._gained = 0.0  # by runs that have ended
        self._ended = 0
        self._began: float | None = None

    def reach(self, run: str, share: float) -> None:
        """A run is so far; a replaced worker may be behind the one before."""
        if run not in self._shares or share < self._shares[run].now:
            self._shares[run] = Share(share, share)
        self._shares[run].now = share
        self._waiting.discard(run)
        self._began = self._clock() if self._began is None else self._began

    def end(self, run: str) -> None:
        """A run is finished, failed, or was finished before."""
        self._waiting.discard(run)
        self._ended += 1
        share = self._shares.pop(run, None)
        self._gained += share.gained if share else 0

    @property
    def done(self) -> float:
        """Runs, with the parts of those at work."""
        return self._ended + sum(share.now for share in self._shares.values())

    @property
    def seconds_left(self) -> float | None:
        gained = self._gained + sum(share.gained for share in self._shares.values())
        if gained <= 0 or self._began is None:
            return None
        rest = len(self._waiting) + sum(1 - share.now for share in self._shares.values())
        return rest * (self._clock() - self._began) / gained
