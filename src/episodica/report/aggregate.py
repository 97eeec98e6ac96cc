"""Runs that differ in seed and order alone are one line of a table or figure: their mean, with its interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from episodica.config import RunConfig
from episodica.records.results import Results, Session
from episodica.report.comparison import Run, identity, labels, setting, unseen_setting

# 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
NORMAL = 1.959964

Measured = tuple[float, float | None]  # a mean and its interval over episodes, where it has one


def student(freedom: int) -> float:
    """The 97.5 % quantile; beyond the table by its expansion around the normal one (Fisher and Cornish)."""
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    return (
        NORMAL
        + (NORMAL**3 + NORMAL) / (4 * freedom)
        + (5 * NORMAL**5 + 16 * NORMAL**3 + 3 * NORMAL) / (96 * freedom**2)
    )


def shown_interval(over_repeats: float | None, over_episodes: float | None) -> float | None:
    """Over repeats where there are several, else over episodes."""
    return over_episodes if over_repeats is None else over_repeats


@dataclass(frozen=True)
class Value:
    """A mean over repeats. Its interval over them is none for one; that over episodes is kept apart."""

    mean: float
    over_repeats: float | None
    over_episodes: float | None

    @classmethod
    def of(cls, means: Sequence[float], over_episodes: float | None = None) -> "Value":
        n = len(means)
        mean = sum(means) / n
        if n == 1:
            return cls(mean, None, over_episodes)
        spread = sqrt(sum((m - mean) ** 2 for m in means) / (n - 1))
        return cls(mean, student(n - 1) * spread / sqrt(n), over_episodes)

    @property
    def interval(self) -> float | None:
        return shown_interval(self.over_repeats, self.over_episodes)


@dataclass(frozen=True, eq=False)
class Line:
    name: str
    runs: tuple[Run, ...]
    lent_to: int | None = None  # tasks of another stream, for which it is the bound on unseen classes

    @property
    def config(self) -> RunConfig:
        return self.runs[0][0]

    @property
    def bound(self) -> bool:
        return self.config.is_bound

    @property
    def own(self) -> bool:
        """Whether it is the bound of one method alone, by the losses of that method."""
        return self.config.stream.merged

    @property
    def setting(self) -> dict[str, Any]:
        """What it has in common with its bound."""
        return setting(self.config)

    @property
    def last(self) -> int:
        return self.lent_to or self.config.stream.learned

    @property
    def finished(self) -> bool:
        return all(results.status == "finished" for _, results in self.runs)

    @property
    def counted(self) -> tuple[Run, ...]:
        """The runs whose mean is shown: those that are finished, or all where none is."""
        done = tuple(run for run in self.runs if run[1].status == "finished")
        return done or self.runs

    @property
    def repeats(self) -> str:
        """Over what the mean is: `2 seeds`, `3 orders x 2 seeds`, with the runs that are not in it."""
        orders = self._by_order()
        seeds = max(len(runs) for runs in orders.values())
        parts = [_plural(len(orders), "order")] * (len(orders) > 1) + [_plural(seeds, "seed")]
        waiting = len(self.runs) - len(self.counted)
        state = f"; {waiting} more unfinished" if waiting else "" if self.finished else ", unfinished"
        return " x ".join(parts) + state

    def at(self, session: int, metric: str) -> Value | None:
        """After a session, where every counted run has got there; a bound stands where the stream ends."""

        def measured(results: Results) -> Measured | None:
            row = self._row(results, session) if self.has(metric) else None
            found = None if row is None else getattr(row, metric)
            return None if found is None else (found.mean, found.ci95)

        return self.mean(measured)

    def forgetting(self, session: int) -> Value | None:
        """In points of a fraction, after a session; none for a bound, which never has an earlier model."""

        def measured(results: Results) -> Measured | None:
            row = None if self.bound else self._row(results, session)
            return None if row is None or row.forgetting is None else (row.forgetting, None)

        return self.mean(measured)

    def of_task(self, task: int, session: int) -> Value | None:
        """The accuracy on one task after a session: a cell of the accuracy matrix."""

        def measured(results: Results) -> Measured | None:
            row = self._row(results, session) if self.has("seen") else None
            found = next((one for one in row.per_task if one.task == task), None) if row else None
            return None if found is None else (found.mean, found.ci95)

        return self.mean(measured)

    def average(self, metric: str) -> Value | None:
        """Over all sessions; none for a bound, which has one, and for a line without a finished run."""
        if self.bound or any(results.status != "finished" for _, results in self.counted):
            return None
        return self.mean(lambda results: (getattr(results.average, metric), None))

    def mean(self, measured: Callable[[Results], Measured | None]) -> Value | None:
        """The mean of orders, each the mean of its seeds; of one order, that of its seeds.

        An order draws other classes and other questions, so orders are what repeats where there are several. Seeds
        of an order answer the same questions, so their intervals over episodes do not shrink with their number.
        """
        orders = [[measured(results) for _, results in runs] for runs in self._by_order().values()]
        found = [[one for one in order if one is not None] for order in orders]
        if any(len(one) < len(order) for one, order in zip(found, orders, strict=True)):
            return None
        means = [_mean([mean for mean, _ in order]) for order in found]
        widths = [
            _mean([width for _, width in order if width is not None]) for order in found if order[0][1] is not None
        ]
        episodes = sqrt(sum(width**2 for width in widths)) / len(widths) if widths else None
        return Value.of(means if len(means) > 1 else [mean for mean, _ in found[0]], episodes)

    def restricted_to(self, orders: Sequence[int]) -> "Line":
        return replace(self, runs=tuple(run for run in self.runs if run[0].stream.seed in orders))

    def lend(self, line: "Line") -> "Line":
        """A bound as it stands beside a line of another stream."""
        return replace(self, name=f"{self.name} of {self.config.stream.tasks} tasks", lent_to=line.last)

    def bounds(self, line: "Line", metric: str) -> bool:
        """Whether a line can be at most as good as this one, had it all classes at once. Joint training is the bound
        of every method, and a method that was given all tasks at once that of itself."""
        if not self.bound or line.bound or (self.own and self.config.method.name != line.config.method.name):
            return False
        return self.setting == line.setting or (
            metric == "meta_test" and unseen_setting(self.config) == unseen_setting(line.config)
        )

    @property
    def orders(self) -> list[int]:
        return list(self._by_order())

    def has(self, metric: str) -> bool:
        """A bound that is lent was evaluated on other tasks than those of the stream it stands for."""
        return metric == "meta_test" or self.lent_to is None

    def _by_order(self) -> dict[int, list[Run]]:
        orders: dict[int, list[Run]] = {}
        for run in self.counted:
            orders.setdefault(run[0].stream.seed, []).append(run)
        return orders

    def _row(self, results: Results, session: int) -> Session | None:
        if self.bound:
            return results.sessions[-1] if results.sessions and session == self.last else None
        return next((row for row in results.sessions if row.session == session), None)


def lines(runs: Sequence[Run]) -> list[Line]:
    """In the order in which they are met."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(str(identity(run[0])), []).append(run)
    first = [_unrepeated(group[0][0]) for group in groups.values()]
    names = labels(first)
    return [
        Line(names[config.run_id], tuple(sorted(group, key=lambda run: (run[0].stream.seed, run[0].seed))))
        for config, group in zip(first, groups.values(), strict=True)
    ]


def gap_to_joint(line: Line, bound: Line, metric: str) -> Value | None:
    """How far a line is below its bound after the last session, on the orders of the line, all of which it needs."""
    if not bound.bounds(line, metric) or not set(line.orders) <= set(bound.orders):
        return None
    apart = []
    for order in line.orders:
        own, reached = (part.restricted_to([order]).at(part.last, metric) for part in (line, bound))
        if own is None or reached is None:
            return None
        apart.append(reached.mean - own.mean)
    return Value.of(apart)


def _unrepeated(config: RunConfig) -> RunConfig:
    return config.model_copy(update={"seed": 0, "stream": config.stream.model_copy(update={"seed": 0})})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count > 1)}"
