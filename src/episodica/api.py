"""The command's verbs as functions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from episodica.config import RunConfig
from episodica.config.flat import Flat, flatten
from episodica.data.pairs import Pairs, keep_in_cache
from episodica.engine.run import stopping_gently
from episodica.engine.trainer import OnEvent
from episodica.errors import InputError
from episodica.loggers.following import find_loggers, following
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
    data: Pairs | None = None,
) -> list[RunConfig]:
    """The runs that a recipe stands for. Overrides are nested (`{"method": {"p": 0.4}}`) or paths (`"method.p"`).

    `data` is a data set of your own, with `__len__` and `__getitem__ -> (image, label)`, in place of the recipe's; it
    is read into the image cache, at `data.size` pixels or those of its first image.

    `only` picks runs by their values (`{"method.name": ["erd", "ft"]}`); `orders` and `seeds` repeat each of them over
    class orders and seeds 0, 1, ...
    """
    conditions = [Only(path, value if isinstance(value, list) else [value]) for path, value in (only or {}).items()]
    wanted = flatten(overrides or {})
    if data is not None:
        wanted |= _own_data(data, wanted)
    return grid.plan(load_recipe(recipe), wanted, conditions, orders, seeds)


def _own_data(data: Pairs, overrides: Flat) -> Flat:
    for path in ("data.name", "data.root", "data.fingerprint"):
        if path in overrides:
            raise InputError(f"{path} = {overrides[path]!r}: the data set is passed as `data`; leave one of them out")
    size = overrides.get("data.size")
    if not (size is None or isinstance(size, int)):
        raise InputError(f"data.size = {size!r}: give one number of pixels where the data set is passed as `data`")
    return keep_in_cache(data, size)


def run(
    recipe: str = "quickstart",
    overrides: Mapping[str, Any] | None = None,
    *,
    only: Mapping[str, Any] | None = None,
    orders: int | None = None,
    seeds: int | None = None,
    data: Pairs | None = None,
    out: str | Path = "runs",
    on_event: OnEvent = lambda event: None,
    executor: Executor | None = None,
    log: Sequence[str] = (),
) -> list[Results]:
    """Train and evaluate a recipe into `out`; finished runs are read, broken ones continued. One result a run.

    `data` is a data set of your own, as in `plan`. By default one run after another; `executor` may be
    `SideBySide(processes=2)` or `OnRay(address="auto")`. `log` names loggers: tensorboard, mlflow, wandb.
    """
    configs = plan(recipe, overrides, only=only, orders=orders, seeds=seeds, data=data)
    names, loggers = {config.run_id: config.run_id for config in configs}, find_loggers(log)
    announce(configs, Path(out))
    with (
        stopping_gently() as stop,
        following(loggers, load_recipe(recipe).name, names, Path(out), lambda config: on_event) as on_event_for,
    ):
        outcome = (executor or InTurn()).run(configs, Path(out), on_event_for, stop)
    if outcome.failed:
        raise outcome.failed[0][1]
    if outcome.interrupted:
        raise KeyboardInterrupt
    return [results for _, results in outcome.finished]
