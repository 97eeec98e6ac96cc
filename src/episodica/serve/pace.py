"""How much of a run is done, and how long the rest will take."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from episodica.config import resolve
from episodica.errors import InputError
from episodica.serve.told import Told


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
        merged = config.stream.tasks if method.merges_tasks else 1
        episodic = config.epochs * merged * config.train.episodes
        return cls(config.stream.tasks // merged, method.steps(episodic, config.training_shape))


def done(told: Told, schedule: Schedule) -> float:
    """The share of all steps that is taken."""
    taken = max(told.session - 1, 0) * schedule.steps + told.step
    return min(taken / max(schedule.sessions * schedule.steps, 1), 1.0)


def seconds_left(told: Told, schedule: Schedule) -> float | None:
    """Steps at the present speed, then evaluations at what a pool has cost; None before there is a speed."""
    speed = told.speed or _speed_before(told)
    if speed is None:
        return None
    steps = schedule.steps * (schedule.sessions - told.session + 1) - told.step
    return max(steps, 0) / speed + _pools_left(told, schedule) * _seconds_a_pool(told)


def _speed_before(told: Told) -> float | None:
    """Of the session before, at the beginning of one."""
    row = told.rows.get(told.session - 1)
    if row is None or len(told.starts) < 2 or not row.seconds_train:
        return None
    return (told.starts[-1] - told.starts[-2]) / row.seconds_train or None


def _pools_left(told: Told, schedule: Schedule) -> int:
    """Each session is evaluated on the unseen classes and on all tasks so far."""
    sessions = range(told.session, schedule.sessions + 1)
    pools = sum(1 + session for session in sessions if session not in told.rows)
    return max(pools - (told.examined if told.session not in told.rows else 0), 0)


def _seconds_a_pool(told: Told) -> float:
    pools = sum(1 + len(row.per_task) for row in told.rows.values())
    return sum(row.seconds_eval for row in told.rows.values()) / pools if pools else 0.0
