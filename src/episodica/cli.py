"""The command `episodica`: what a person types, and what the person is told."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from errno import ENOSPC
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import torch
import yaml
from cyclopts import App, CycloptsError, Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress as ProgressBar

from episodica.bench import parts
from episodica.bench.scene import available_kernels
from episodica.bench.show import markdown, rendered, to_json
from episodica.bench.timing import CLOCKS, Effort
from episodica.config import RunConfig
from episodica.data.cache import cache_folder
from episodica.data.housekeeping import clear
from episodica.data.inspection import contact_sheets, describe_split, inspect
from episodica.engine.device import computing, describe_environment, keep_freed_memory
from episodica.engine.problem import split_of
from episodica.engine.run import stopping_gently
from episodica.errors import FolderInUse, InputError
from episodica.records.catalogue import amount, cache_report, catalogue, data_table, inspection_report
from episodica.records.files import write_json
from episodica.records.progress import ProgressBars
from episodica.records.table import labels, results_tables
from episodica.registry import find
from episodica.report.aggregate import lines
from episodica.report.figures import curves
from episodica.report.write import write_report
from episodica.sweep.grid import Recipe, default_recipe, load_recipe, packaged_recipes, plan
from episodica.sweep.local import run_all
from episodica.sweep.side_by_side import processes_for, run_side_by_side

AT_LEAST_1 = Number(gte=1)
OK, FAILED, BAD_INPUT, IN_USE, INTERRUPTED = 0, 1, 2, 3, 130

screen = Console()
complaints = Console(stderr=True)
app = App(
    name="episodica",
    help="Incremental meta-learning for few-shot image recognition.",
    version=version("episodica"),
    console=screen,
    error_console=complaints,
)

Tokens = Annotated[str, Parameter(name="RECIPE --KEY.PATH", allow_leading_hyphen=True, show=False)]


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


def parse(tokens: Sequence[str]) -> tuple[str | None, dict[str, Any]]:
    """[NAME] --a.b VALUE --c=VALUE ... -> name, {"a.b": value, "c": value}; values are read as YAML."""
    name, overrides, rest = None, {}, list(tokens)
    while rest:
        token = rest.pop(0)
        if not token.startswith("--"):
            if name is not None:
                raise InputError(f'two names, "{name}" and "{token}": give one, and options as --key.path VALUE')
            name = token
            continue
        key, equals, text = token[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InputError(f"--{key} needs a value: --{key} VALUE")
            text = rest.pop(0)
        try:
            overrides[key] = yaml.safe_load(text)
        except yaml.YAMLError:
            overrides[key] = text
    return name, overrides


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
        failures.setdefault(_one_line(error), []).append(config.run_id)
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
        curves(lines(runs), [picture], f"{name}: {runs[0][1].dataset}, {runs[0][1].tasks} tasks")
        drawn = f", the curves are in {picture}"
    except (InputError, OSError) as error:
        drawn = f" (no picture: {error})"
    screen.print(f"Everything was written to {out}/: a folder for each run{drawn}.", soft_wrap=True)


@app.command
def report(
    *folders: Annotated[Path, Parameter(help="run folders, or folders that hold run folders")],
    out: Annotated[Path, Parameter(help="folder for the report")] = Path("report"),
) -> int:
    """Write what runs have measured: tables in the paper's form with its numbers beside ours, and curves."""
    written = write_report(folders or (Path("runs"),), out)
    screen.print(f"The report is {written}", soft_wrap=True)
    return OK


@app.command
def bench(
    *what: Annotated[parts.Name, Parameter(help="training, evaluation, data, growth; default: all but growth")],
    threads: Annotated[int | None, Parameter(help="CPU threads; default: all cores", validator=AT_LEAST_1)] = None,
    rounds: Annotated[int, Parameter(help="rounds, of which the median counts", validator=AT_LEAST_1)] = 5,
    steps: Annotated[int, Parameter(help="steps of a turn in a round", validator=AT_LEAST_1)] = 8,
    clock: Annotated[
        Literal["wall", "cpu"],
        Parameter(help="cpu, with one thread: only time that this process had, where others work"),
    ] = "wall",
    as_markdown: Annotated[bool, Parameter(name="--markdown", help="print Markdown", negative="")] = False,
    json_file: Annotated[Path | None, Parameter(name="--json", help="file for all rows, with the machine")] = None,
) -> int:
    """Measure the speed of this machine's training, evaluation and data, against loops as they are usually written.

    Ratios are speeds in units of each table's first row, taken within interleaved rounds. The fraction of the peak is
    useful arithmetic in units of the best convolution of the same round.
    """
    if clock == "cpu" and threads != 1:
        raise InputError("--clock cpu adds up what all threads spend: it goes with --threads 1")
    keep_freed_memory()
    asked = {"what": what or parts.BY_DEFAULT, "rounds": rounds, "steps": steps, "clock": clock}
    effort, sections = Effort(rounds, steps, CLOCKS[clock]), []
    with computing(threads):
        machine = describe_environment(torch.device("cpu"), available_kernels()[-1])
        for name in asked["what"]:
            complaints.print(f"measuring {name} ...")
            for section in parts.PARTS[name](effort):
                sections.append(section)
                if as_markdown:
                    sys.stdout.write(markdown(section) + "\n")
                else:
                    screen.print(rendered(section))
    if json_file is not None:
        write_json(json_file, to_json(sections, machine, asked))
        complaints.print(f"The rows were written to {json_file}", soft_wrap=True)
    return OK


@app.command(name="list")
def show(what: Literal["all", "methods", "learners", "backbones", "datasets", "recipes", "config"] = "all", /) -> int:
    """Show what there is, with each field, its default and its meaning.

    Parameters
    ----------
    what
        methods, learners, backbones, datasets, recipes, config (the sections that every run has), or all
    """
    for part in catalogue(what):
        screen.print(part)
    return OK


data = App(name="data", help="Look at data sets before they are trained on.")
app.command(data)

Root = Annotated[str | None, Parameter(help="folder or archive with the files; default: EPISODICA_DATA")]


@data.default
def data_list() -> int:
    """List the data sets, with what is found where."""
    screen.print(data_table())
    screen.print(cache_report(), soft_wrap=True)
    return OK


@data.command(name="check", usage="Usage: episodica data check NAME [--root DIR] [--key.path VALUE ...] [OPTIONS]")
def data_check(
    *tokens: Tokens,
    root: Root = None,
    as_json: Annotated[bool, Parameter(name="--json", help="print one JSON object", negative="")] = False,
) -> int:
    """Decode every image and report what is there, what is wrong with it, and the split it would give.

    NAME is a data set (`episodica data` lists them). Options of the config, such as `--stream.tasks 16`, apply.
    """
    config = _config_of_data(tokens, root)
    dataset = config.data.build()
    split, problem = None, "there are unreadable images: repair or remove them"
    with _reading_bar() as tell:
        found, arrays = inspect(dataset, tell)
    if found.sound:
        try:
            split, problem = describe_split(split_of(config, dataset, arrays), arrays.class_names), None
        except InputError as error:
            problem = str(error)
    if as_json:
        sys.stdout.write(json.dumps(found.to_json() | {"split": split, "problem": problem}, indent=2) + "\n")
    else:
        screen.print(inspection_report(found, split, problem))
    return OK if problem is None else BAD_INPUT


@data.command(name="sheet", usage="Usage: episodica data sheet NAME [--root DIR] [--key.path VALUE ...] [OPTIONS]")
def data_sheet(
    *tokens: Tokens,
    root: Root = None,
    out: Annotated[Path, Parameter(help="folder for the pictures")] = Path("sheets"),
) -> int:
    """Write a contact sheet (PNG) of each task and of the unseen classes: what the learner will see.

    NAME is a data set. Options of the config, such as `--stream.tasks 16 --data.size 32`, apply.
    """
    config = _config_of_data(tokens, root)
    dataset = config.data.build()
    with _reading_bar() as tell:
        arrays = dataset.load(tell)
    paths = contact_sheets(split_of(config, dataset, arrays), arrays, out / dataset.name)
    screen.print(f"{len(paths)} contact sheets were written to {out / dataset.name}{'/'}", soft_wrap=True)
    return OK


@data.command(name="clear-cache")
def data_clear_cache(name: Annotated[str | None, Parameter(help="a data set; default: all")] = None, /) -> int:
    """Remove decoded images from the cache; they are read anew from their files when they are needed."""
    if name is not None:
        find("dataset", name)
    removed, in_use = clear(name)
    screen.print(f"removed from {escape(str(cache_folder()))}: {amount(removed)}", soft_wrap=True)
    for entry in in_use:
        screen.print(f"kept {escape(entry.folder.name)}: another process is writing it", soft_wrap=True)
    return OK


def _config_of_data(tokens: Sequence[str], root: str | None) -> RunConfig:
    name, overrides = parse(tokens)
    if name is None:
        raise InputError("name a data set: `episodica data` lists them")
    find("dataset", name)
    given = {"data.root": root} if root is not None else {}
    recipe = packaged_recipes().get(name, Recipe(name))
    return plan(recipe, {"data.name": name, **overrides, **given})[0]


@contextmanager
def _reading_bar() -> Iterator[Callable[[str, int, int], None]]:
    with ProgressBar(console=complaints, transient=True, disable=not complaints.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def exit_code(error: BaseException) -> int:
    if isinstance(error, FolderInUse):
        return IN_USE
    return BAD_INPUT if isinstance(error, InputError) else FAILED


def _one_line(error: BaseException) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError) and error.errno == ENOSPC:
        return "the disk is full (no space left); free some and run the same command again to continue"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}; run the same command again to continue"
    return f"{type(error).__name__}: {error} (details in error.log of its folder)"


def main() -> NoReturn:
    try:
        code = app(exit_on_error=False, print_error=False)
    except (InputError, CycloptsError) as error:
        complaints.print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        code = exit_code(error) if isinstance(error, InputError) else BAD_INPUT
    except KeyboardInterrupt:
        complaints.print("Stopped at once. Run the same command again to continue from the last checkpoint.")
        code = INTERRUPTED
    sys.exit(code or OK)
