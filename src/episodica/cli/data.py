"""`episodica data`: data sets, looked at before they are trained on."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from episodica.cli.catalogue import amount, cache_report, data_table, inspection_report
from episodica.cli.overrides import Tokens, parse
from episodica.cli.screen import BAD_INPUT, OK, app, complaints, say, screen
from episodica.cli.stages import stages
from episodica.config import RunConfig
from episodica.data.housekeeping import clear
from episodica.data.inspection import contact_sheets, describe_split, inspect
from episodica.errors import InputError
from episodica.files.cache_folder import cache_folder
from episodica.registry import find
from episodica.sweep.grid import plan
from episodica.sweep.recipe import Recipe, packaged_recipes

data = App(name="data", help="Look at data sets before they are trained on.")
app.command(data)

Root = Annotated[
    str | None, Parameter(help="folder, archive or address (s3://...) of the files; default: EPISODICA_DATA")
]


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
    from episodica.engine.experiment import split_of

    dataset = config.data.build()
    split, problem = None, "there are unreadable images: repair or remove them"
    with stages(complaints) as on_progress:
        found, arrays = inspect(dataset, on_progress)
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
    from episodica.engine.experiment import split_of

    dataset = config.data.build()
    with stages(complaints) as on_progress:
        arrays = dataset.load(on_progress)
    paths = contact_sheets(split_of(config, dataset, arrays), arrays, out / dataset.name)
    say(f"{len(paths)} contact sheets were written to {out / dataset.name}/")
    return OK


@data.command(name="clear-cache")
def data_clear_cache(name: Annotated[str | None, Parameter(help="a data set; default: all")] = None, /) -> int:
    """Remove decoded images from the cache; they are read anew from their files when they are needed."""
    if name is not None:
        find("dataset", name)
    removed, in_use = clear(name)
    say(f"removed from {cache_folder()}: {amount(removed)}")
    for entry in in_use:
        say(f"kept {entry.folder.name}: another process is writing it")
    return OK


def _config_of_data(tokens: Sequence[str], root: str | None) -> RunConfig:
    name, overrides = parse(tokens)
    if name is None:
        raise InputError("name a data set: `episodica data` lists them")
    find("dataset", name)
    given = {"data.root": root} if root is not None else {}
    recipe = packaged_recipes().get(name, Recipe(name))
    return plan(recipe, {"data.name": name, **overrides, **given})[0]
