"""What there is to choose from, made from the components' own fields."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.console import Group
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from episodica.config import RunConfig, sections
from episodica.data.dataset import FileDataset, NotThere
from episodica.data.housekeeping import Entry, entries
from episodica.data.inspection import Inspection
from episodica.errors import InputError
from episodica.files.cache_folder import cache_folder
from episodica.registry import components, settings_of
from episodica.sweep.recipe import packaged_recipes

LISTED = 10  # unreadable or duplicate images shown on the screen; --json has all
KINDS = {
    "methods": ("method", "method"),
    "learners": ("learner", "learner"),
    "backbones": ("backbone", "backbone"),
    "datasets": ("dataset", "data"),
}


class Setting(NamedTuple):
    """A field of the config, as users see it."""

    path: str
    default: str
    meaning: str
    choices: tuple[str, ...]


def settings_in(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    """The fields of a component's settings or of a section, each with its key path."""
    for key, field in model.model_fields.items():
        if key != "name" and not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            choices = tuple(str(value) for value in _choices(field.annotation))
            yield Setting(f"{prefix}{key}", _text(field), field.description or "", choices)


def catalogue(what: str) -> Iterator[Table]:
    for heading, (kind, section) in KINDS.items():
        if what in ("all", heading):
            for name, component in components(kind).items():
                about = " ".join((component.__doc__ or "").split())
                yield _fields(f"{section}.name: {name}", about, settings_of(component), f"{section}.")
    if what in ("all", "recipes"):
        table = _table("recipes", "episodica run NAME")
        for name, recipe in packaged_recipes().items():
            table.add_row(name, "", recipe.about)
        yield table
    if what in ("all", "config"):
        for name, section in sections():
            yield _fields(name, "for every run", section, f"{name}.")
        yield _fields("run", "for every run", RunConfig, "")


def data_table() -> Table:
    """The data sets with the numbers of their official forms, and what is found where."""
    table = Table(
        "name", "classes", "images", "found", title="data sets", title_justify="left", box=None, padding=(0, 2)
    )
    for name, component in components("dataset").items():
        dataset = component()
        official = getattr(dataset, "official", None) or ("", "")
        table.add_row(name, *map(str, official), _found(dataset))
    return table


def _found(dataset: Any) -> str:
    if not isinstance(dataset, FileDataset):
        return "[green]embedded: drawn when needed"
    root = os.environ.get("EPISODICA_DATA")
    if dataset.official is None:  # any folder may hold it
        return "[dim]pass --data.root"
    if not root:
        return "[dim]set EPISODICA_DATA or pass --data.root"
    try:
        found = dataset.locate()
    except NotThere:
        return f"[dim]not in {_shown(root)}; expected: {escape(dataset.layout)}"
    except InputError as error:
        return f"[red]{_shown(str(error))}"
    return f"[green]{_shown(str(found.place))}"


def cache_report() -> str:
    """Where decoded images are, and what they take."""
    found = entries()
    remedy = "; `episodica data clear-cache` removes them" if found else ""
    return f"cache of decoded images: {escape(str(cache_folder()))}, {amount(found)}{remedy}"


def amount(found: Sequence[Entry]) -> str:
    size = sum(entry.size for entry in found)
    return f"{len(found)} {'entry' if len(found) == 1 else 'entries'}, {decimal(size)}" if found else "nothing"


def inspection_report(found: Inspection, split: dict[str, Any] | None, problem: str | None) -> Group:
    """What `episodica data check` prints: the split it would use, or the problem that stands in its way."""
    sizes = sorted(found.class_sizes.values())
    lines = [
        f"[bold]{found.dataset}[/]: {found.images} images of {found.classes} classes, "
        f"{sizes[0]} to {sizes[-1]} a class (median {sizes[len(sizes) // 2]})",
        *map(_shown, found.remarks),
        f"unreadable: {len(found.unreadable) or 'none'}",
        *(f"  [red]{_shown(line)}" for line in found.unreadable[:LISTED]),
        f"duplicates: {len(found.duplicates) or 'none'}",
        *(f"  {' = '.join(map(_shown, names))}" for names in found.duplicates[:LISTED]),
    ]
    if split is None:
        return Group(*lines, f"[red]no split:[/] {escape(problem or '')}")
    table = Table("", "classes", "train", "test", "", title=f"split {split['hash']}", title_justify="left", box=None)
    for number, task in enumerate(split["tasks"], start=1):
        table.add_row(f"task {number}", *_counts(task, "train_images", "test_images"), _some(task["classes"]))
    unseen = split["unseen"]
    table.add_row("unseen", str(len(unseen["classes"])), "", str(unseen["images"]), _some(unseen["classes"]))
    return Group(*lines, table)


def _counts(task: dict[str, Any], *keys: str) -> list[str]:
    return [str(len(task["classes"])), *(str(task[key]) for key in keys)]


def _some(names: list[str]) -> str:
    return ", ".join(map(_shown, names[:5])) + (", ..." if len(names) > 5 else "")


def _shown(name: str) -> str:
    """Names of files and folders may hold what no terminal should be sent."""
    return escape(name if name.isprintable() else repr(name))


def _fields(title: str, about: str, model: type[BaseModel], prefix: str) -> Table:
    table = _table(title, about)
    for setting in settings_in(model, prefix):
        choices = f" [dim]({' | '.join(setting.choices)})" if setting.choices else ""
        table.add_row(f"--{setting.path}", setting.default, setting.meaning + choices)
    return table


def _table(title: str, about: str) -> Table:
    table = Table(title=f"[bold]{title}[/]  {about}", title_justify="left", box=None, show_header=False, padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(style="green")
    table.add_column()
    return table


def _choices(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _text(field: FieldInfo) -> str:
    return "-" if field.default is None else str(field.default)
