"""What there is to choose from, made from the components' own fields."""

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from rich.table import Table

from episodica.config import RunConfig, sections
from episodica.registry import components, settings_of
from episodica.sweep.grid import packaged_recipes

KINDS = {
    "methods": ("method", "method"),
    "learners": ("learner", "learner"),
    "backbones": ("backbone", "backbone"),
    "datasets": ("dataset", "data"),
}


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


def _fields(title: str, about: str, model: type[BaseModel], prefix: str) -> Table:
    table = _table(title, about)
    for key, field in model.model_fields.items():
        if key != "name" and not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            table.add_row(f"--{prefix}{key}", _text(field.default), _meaning(field))
    return table


def _table(title: str, about: str) -> Table:
    table = Table(title=f"[bold]{title}[/]  {about}", title_justify="left", box=None, show_header=False, padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(style="green")
    table.add_column()
    return table


def _meaning(field: Any) -> str:
    choices = [str(value) for value in _choices(field.annotation)]
    return (field.description or "") + (f" [dim]({' | '.join(choices)})" if choices else "")


def _choices(annotation: Any) -> list[Any]:
    from typing import Literal

    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _text(default: Any) -> str:
    return "-" if default is None else str(default)
