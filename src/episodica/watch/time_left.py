"""How much of a run is done, and how long the rest will take."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from episodica.config import resolve
from episodica.errors import InputError
from episodica.watch.run_events import RunEvents


class Schedule(NamedTuple):
    """Sessions of a run, and steps of each."""

    sessions: int
    steps: int

    @classmethod
    def of(cls, tree: Mapping[str, Any]) -> "Schedule | None":
        """None for a config that this version does not understand."""
        try:
            config = resolve(dict(tree))
        except (InputError, TypeError, ValueError):
            return None
        method = config.method.build()
        merged = config.stream.learned if method.merges_tasks else 1
        episodic = config.epochs * merged * config.train.episodes
        return cls(config.stream.learned // merged, method.steps(episodic, config.training_shape))


def done(events: RunEvents, schedule: Schedule) -> float:
    """The share of all steps that is taken."""
    taken = max(events.session - 1, 0) * schedule.steps + events.step
    return min(taken / max(schedule.sessions * schedule.steps, 1), 1.0)


def seconds_left(events: RunEvents, schedule: Schedule) -> float | None:
    """Steps at the present speed, then evaluations at what a pool has cost; None before there is a speed."""
    speed = events.speed or _speed_before(events)
    if speed is None:
        return None
    steps = schedule.steps * (schedule.sessions - events.session + 1) - events.step
    return max(steps, 0) / speed + _pools_left(events, schedule) * _seconds_a_pool(events)


def _speed_before(events: RunEvents) -> float | None:
    """Of the session before, at the beginning of one."""
    row = events.rows.get(events.session - 1)
    if row is None or len(events.starts) < 2 or not row.seconds_train:
        return None
    return (events.starts[-1] - events.starts[-2]) / row.seconds_train or None


def _pools_left(events: RunEvents, schedule: Schedule) -> int:
    """Each session is evaluated on the unseen classes and on all tasks so far."""
    sessions = range(events.session, schedule.sessions + 1)
    pools = sum(1 + session for session in sessions if session not in events.rows)
    return max(pools - (events.examined if events.session not in events.rows else 0), 0)


def _seconds_a_pool(events: RunEvents) -> float:
    pools = sum(1 + len(row.per_task) for row in events.rows.values())
    return sum(row.seconds_eval for row in events.rows.values()) / pools if pools else 0.0
