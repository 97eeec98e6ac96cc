"""`episodica run`: a recipe, trained and evaluated."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import yaml
from cyclopts import Parameter

from episodica.cli.overrides import Tokens, parse
from episodica.cli.screen import OK, app, say
from episodica.cluster.connection import Disk
from episodica.config import RunConfig
from episodica.engine.device import check_device
from episodica.errors import InputError
from episodica.loggers.following import find_loggers
from episodica.sweep.executor import Executor
from episodica.sweep.grid import plan
from episodica.sweep.on_ray import OnRay
from episodica.sweep.recipe import default_recipe, load_recipe
from episodica.sweep.selection import Only, Part


@app.command(usage="Usage: episodica run [RECIPE] [--key.path VALUE ...] [OPTIONS]")
def run(
    *tokens: Tokens,
    only: Annotated[
        list[str] | None,
        Parameter(help="keep runs with these values, such as method.name=erd,ft; several must all hold", negative=""),
    ] = None,
    orders: Annotated[int | None, Parameter(help="repeat each run with so many orders of the classes")] = None,
    seeds: Annotated[int | None, Parameter(help="repeat each run with so many seeds")] = None,
    part: Annotated[
        str | None, Parameter(help="only this share of the runs, such as 3/16: for job arrays of a cluster")
    ] = None,
    on: Annotated[Literal["local", "ray"], Parameter(help="processes of this machine, or a Ray cluster")] = "local",
    address: Annotated[
        str | None, Parameter(help="with --on ray: auto or HOST:PORT of a cluster; by default one is started here")
    ] = None,
    cpus: Annotated[int | None, Parameter(help="with --on ray: CPUs, and threads, of each run (1)")] = None,
    gpus: Annotated[float | None, Parameter(help="with --on ray: GPUs of each run (0)")] = None,
    disk: Annotated[
        Disk | None,
        Parameter(
            help="with --on ray: workers write to the shared --out, or to their own disk, and it is copied (auto)"
        ),
    ] = None,
    log: Annotated[
        list[str] | None,
        Parameter(help="also write to tensorboard, mlflow or wandb (offline); several times for several", negative=""),
    ] = None,
    out: Annotated[Path, Parameter(help="folder in which each run has a folder of its own")] = Path("runs"),
    dry_run: Annotated[bool, Parameter(help="print the resolved runs and stop", negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", help="with --dry-run: as a JSON list", negative="")] = False,
) -> int:
    """Train and evaluate a recipe: one run, or a grid of them.

    RECIPE is the name of a packaged recipe (`episodica list recipes`) or a YAML file; with none, the one for
    `--data.name` (folder, cifar100_16, ...), or else quickstart. Every field of the config can be set with
    `--key.path VALUE`, such as `--method.name erd --method.p 0.4 --seed "[0, 1]"`; a list where one value is expected
    makes a run of each. `episodica list` shows all fields. Running the same again continues where it stopped.
    """
    name, overrides = parse(tokens)
    recipe = load_recipe(name or default_recipe(overrides))
    configs = plan(recipe, overrides, [Only.parse(text) for text in only or []], orders, seeds)
    share = None if part is None else Part.parse(part)
    configs = configs if share is None else share.take(configs)
    if as_json and not dry_run:
        raise InputError("--json goes with --dry-run: results are in results.json of each run folder")
    if dry_run:
        return _show_plan(configs, as_json)
    if share and not configs:
        say(f"{share} has no run: there are fewer than {share.of}")
        return OK
    executor = _executor(configs, on, address, cpus, gpus, disk)
    loggers = find_loggers(log or [])
    from episodica.cli.running import run_all

    return run_all(f"{recipe.name} {share}" if share else recipe.name, configs, out, executor, loggers)


def _show_plan(configs: Sequence[RunConfig], as_json: bool) -> int:
    resolved = [{"run": config.run_id, "config": config.tree()} for config in configs]
    if as_json:
        sys.stdout.write(json.dumps(resolved, indent=2) + "\n")
    else:
        sys.stdout.write(yaml.safe_dump_all(resolved, sort_keys=False))
    return OK


def _executor(
    configs: Sequence[RunConfig],
    on: str,
    address: str | None,
    cpus: int | None,
    gpus: float | None,
    disk: Disk | None,
) -> Executor:
    if on == "ray":
        return OnRay(address, 1 if cpus is None else cpus, gpus or 0, disk or "auto")
    given = {"address": address, "cpus": cpus, "gpus": gpus, "disk": disk}
    for option, value in given.items():
        if value is not None:
            raise InputError(f"--{option} goes with --on ray; here, --threads says how many threads a run has")
    for config in configs:
        check_device(config.device, config.precision)
    import torch

    from episodica.sweep.side_by_side import local

    return local(configs, torch.get_num_threads())
