"""The command's verbs as functions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from episodica.config import RunConfig
from episodica.engine.run import stopping_gently
from episodica.engine.trainer import OnEvent
from episodica.records.results import Results
from episodica.records.run import announce
from episodica.sweep import grid
from episodica.sweep.executor import Executor
from episodica.sweep.in_turn import InTurn
from episodica.sweep.recipe import load_recipe
from episodica.sweep.selection import Only


def plan(
    recipe: str = "quickstart",
    overrides: Mapping[str, Any] | None = None,
    *,
    only: Mapping[str, Any] | None = None,
    orders: int | None = None,
    seeds: int | None = None,
) -> list[RunConfig]:
    """The runs that a recipe stands for. Overrides are nested (`{"method": {"p": 0.4}}`) or paths (`"method.p"`).

    `only` picks runs by their values (`{"method.name": ["erd", "ft"]}`); `orders` and `seeds` repeat each of them over
    class orders and seeds 0, 1, ...
    """
    conditions = [Only(path, value if isinstance(value, list) else [value]) for path, value in (only or {}).items()]
    return grid.plan(load_recipe(recipe), overrides or {}, conditions, orders, seeds)


def run(
    recipe: str = "quickstart",
    overrides: Mapping[str, Any] | None = None,
    *,
    only: Mapping[str, Any] | None = None,
    orders: int | None = None,
    seeds: int | None = None,
    out: str | Path = "runs",
    on_event: OnEvent = lambda event: None,
    executor: Executor | None = None,
) -> list[Results]:
    """Train and evaluate a recipe into `out`; finished runs are read, broken ones continued. One result a run.

    By default one run after another; `executor` may be `SideBySide(processes=2)` or `OnRay(address="auto")`.
    """
    configs = plan(recipe, overrides, only=only, orders=orders, seeds=seeds)
    announce(configs, Path(out))
    with stopping_gently() as stop:
        outcome = (executor or InTurn()).run(configs, Path(out), lambda config: on_event, stop)
    if outcome.failed:
        raise outcome.failed[0][1]
    if outcome.interrupted:
        raise KeyboardInterrupt
    return [results for _, results in outcome.finished]
