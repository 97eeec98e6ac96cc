"""The command's verbs as functions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from episodica.config import RunConfig
from episodica.engine.run import stopping_gently
from episodica.engine.trainer import Tell
from episodica.records.results import Results
from episodica.sweep import grid
from episodica.sweep.local import run_all


def plan(recipe: str = "quickstart", overrides: Mapping[str, Any] | None = None) -> list[RunConfig]:
    """The runs that a recipe stands for. Overrides are nested (`{"method": {"p": 0.4}}`) or paths (`"method.p"`)."""
    return grid.plan(grid.load_recipe(recipe), overrides or {})


def run(
    recipe: str = "quickstart",
    overrides: Mapping[str, Any] | None = None,
    *,
    out: str | Path = "runs",
    watch: Tell = lambda event: None,
) -> list[Results]:
    """Train and evaluate a recipe into `out`; finished runs are read, broken ones continued. One result a run."""
    with stopping_gently() as stop:
        outcome = run_all(plan(recipe, overrides), Path(out), lambda config: watch, stop)
    if outcome.failed:
        raise outcome.failed[0][1]
    if outcome.interrupted:
        raise KeyboardInterrupt
    return [results for _, results in outcome.finished]
