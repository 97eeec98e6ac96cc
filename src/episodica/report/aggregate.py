"""Runs that differ in their seed alone are one line of a table or figure: the mean over seeds, with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from episodica.config import NOT_IN_THE_NUMBERS, RunConfig
from episodica.records.results import Results, Session
from episodica.records.table import Run, is_bound, labels, setting
from episodica.sweep.flat import flatten

# 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
NORMAL = 1.96


@dataclass(frozen=True)
class Value:
    """A mean over seeds. Its interval is over seeds, or none for one seed; that over episodes is kept apart."""

    mean: float
    over_seeds: float | None
    over_episodes: float | None

    @classmethod
    def of(cls, means: Sequence[float], over_episodes: float | None = None) -> "Value":
        n = len(means)
        mean = sum(means) / n
        if n == 1:
            return cls(mean, None, over_episodes)
        spread = sqrt(sum((m - mean) ** 2 for m in means) / (n - 1))
        quantile = STUDENT[n - 2] if n - 2 < len(STUDENT) else NORMAL
        return cls(mean, quantile * spread / sqrt(n), over_episodes)


@dataclass(frozen=True)
class Line:
    name: str
    runs: tuple[Run, ...]

    @property
    def config(self) -> RunConfig:
        return self.runs[0][0]

    @property
    def bound(self) -> bool:
        return is_bound(self.config)

    @property
    def setting(self) -> dict[str, Any]:
        """What it has in common with its bound."""
        return setting(self.config.model_copy(update={"seed": 0}))

    @property
    def seeds(self) -> list[int]:
        return [config.seed for config, _ in self.runs]

    @property
    def finished(self) -> bool:
        return all(results.status == "finished" for _, results in self.runs)

    def at(self, session: int, metric: str) -> Value | None:
        """After a session, where every seed has got there; a bound stands where the stream ends."""
        rows = [self._row(results, session) for _, results in self.runs]
        found = [getattr(row, metric) for row in rows if row is not None]
        if len(found) < len(rows):
            return None
        episodes = sqrt(sum(value.ci95**2 for value in found)) / len(found)
        return Value.of([value.mean for value in found], episodes)

    def average(self, metric: str) -> Value | None:
        """Over all sessions; none for a bound, which has one, and for a line that is not finished."""
        if self.bound or not self.finished:
            return None
        return Value.of([getattr(results.average, metric) for _, results in self.runs])

    def _row(self, results: Results, session: int) -> Session | None:
        if self.bound:
            return results.sessions[-1] if results.sessions and session == self.config.stream.tasks else None
        return next((row for row in results.sessions if row.session == session), None)


def lines(runs: Sequence[Run]) -> list[Line]:
    """In the order in which they are met."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(_but_for_the_seed(run[0]), []).append(run)
    names = labels([group[0][0].model_copy(update={"seed": 0}) for group in groups.values()])
    return [
        Line(names[group[0][0].model_copy(update={"seed": 0}).run_id], tuple(sorted(group, key=lambda r: r[0].seed)))
        for group in groups.values()
    ]


def _but_for_the_seed(config: RunConfig) -> str:
    ignored = ("seed", *NOT_IN_THE_NUMBERS)
    return str({path: value for path, value in flatten(config.tree()).items() if path not in ignored})
