"""`episodica run`: a recipe, trained and evaluated."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import yaml
from cyclopts import Parameter
from rich.markup import escape

from episodica.cli.overrides import Tokens, parse
from episodica.cli.screen import INTERRUPTED, OK, app, complaints, exit_code, one_line, screen
from episodica.config import RunConfig
from episodica.engine.device import keep_freed_memory
from episodica.engine.run import stopping_gently
from episodica.errors import InputError
from episodica.records.comparison import labels
from episodica.records.progress import ProgressBars
from episodica.report.aggregate import lines
from episodica.report.figures.canvas import save
from episodica.report.figures.curves import curves
from episodica.report.screen import results_tables
from episodica.sweep.grid import default_recipe, load_recipe, plan
from episodica.sweep.local import run_all
from episodica.sweep.side_by_side import processes_for, run_side_by_side


@app.command(usage="Usage: episodica run [RECIPE] [--key.path VALUE ...] [OPTIONS]")
def run(
    *tokens: Tokens,
    out: Annotated[Path, Parameter(help="folder in which each run has a folder of its own")] = Path("runs"),
    dry_run: Annotated[bool, Parameter(help="print the resolved runs and stop", negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", help="with --dry-run: as a JSON list", negative="")] = False,
) -> int:
    """Train and evaluate a recipe: one run, or a grid of them.

    RECIPE is the name of a packaged recipe (`episodica list recipes`) or a YAML file; with none, quickstart, or folder
    with `--data.name folder`. Every field of the config can be set with `--key.path VALUE`, such as
    `--method.name erd --method.p 0.4 --seed "[0, 1]"`; a list where one value is expected makes a run of each.
    `episodica list` shows all fields. Running the same again continues where it stopped.
    """
    name, overrides = parse(tokens)
    recipe = load_recipe(name or default_recipe(overrides))
    configs = plan(recipe, overrides)
    if as_json and not dry_run:
        raise InputError("--json goes with --dry-run: results are in results.json of each run folder")
    if dry_run:
        return _show_plan(configs, as_json)
    return _run_all(recipe.name, configs, out)


def _show_plan(configs: Sequence[RunConfig], as_json: bool) -> int:
    resolved = [{"run": config.run_id, "config": config.tree()} for config in configs]
    if as_json:
        sys.stdout.write(json.dumps(resolved, indent=2) + "\n")
    else:
        sys.stdout.write(yaml.safe_dump_all(resolved, sort_keys=False))
    return OK


def _run_all(name: str, configs: Sequence[RunConfig], out: Path) -> int:
    keep_freed_memory()
    with stopping_gently(complaints.print) as stop, ProgressBars(screen, labels(configs)) as bars:
        processes = processes_for(configs, torch.get_num_threads())
        if processes > 1:
            outcome = run_side_by_side(configs, out, bars.follow, stop, processes)
        else:
            outcome = run_all(configs, out, bars.follow, stop)
    if outcome.finished:
        _show_results(name, outcome.finished, out)
    failures: dict[str, list[str]] = {}
    for config, error in outcome.failed:
        failures.setdefault(one_line(error), []).append(config.run_id)
    for message, runs in failures.items():
        complaints.print(f"[red]failed ({', '.join(runs)}):[/] {escape(message)}", soft_wrap=True)
    if outcome.interrupted:
        screen.print("Interrupted; everything is saved. Run the same command again to continue.")
        return INTERRUPTED
    return exit_code(outcome.failed[0][1]) if outcome.failed else OK


def _show_results(name: str, runs: Sequence[Any], out: Path) -> None:
    for table in results_tables(runs):
        screen.print(table)
    picture = out / f"{name}.png"
    try:
        save(curves(lines(runs), f"{name}: {runs[0][1].dataset}, {runs[0][1].tasks} tasks"), [picture])
        drawn = f", the curves are in {picture}"
    except (InputError, OSError) as error:
        drawn = f" (no picture: {error})"
    screen.print(f"Everything was written to {out}/: a folder for each run{drawn}.", soft_wrap=True)
