"""Recipes: a config plus, where wanted, alternatives that make it a grid of runs.

    about: one line for `episodica list recipes`
    like: cifar100_16                        # all that another recipe says, unless this one says otherwise
    stream: {tasks: 5}                       # any part of the config tree, nested or as `stream.tasks: 5`
    cases: [{method.name: ft}, {method.name: joint, train.episodes_per_step: 2}]     # alternatives, as they are
    axes: {seed: [0, 1]}                     # every value of every axis with every other, and with every case

A list where the config wants one value is an axis too, also within a case. Several groups of cases have names, `cases:
{data: [...], method: [...]}`, and every case of one goes with every case of the others. Cases and axes of a recipe take
the place of all that are in the one it is like.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from episodica.config import DEFAULTS
from episodica.config.flat import Flat, flatten
from episodica.errors import InputError, nearest
from episodica.files.parsing import MOST_YAML, ParseError, parse_yaml

Group = tuple[Flat, ...]  # alternatives: each run has one of them


@dataclass(frozen=True)
class Recipe:
    name: str
    about: str = ""
    base: Flat = field(default_factory=dict)
    groups: tuple[Group, ...] = ()


def packaged_names() -> list[str]:
    folder = files("episodica") / "recipes"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def packaged_recipes() -> dict[str, Recipe]:
    return {name: load_recipe(name) for name in packaged_names()}


def load_recipe(name: str) -> Recipe:
    """A packaged recipe by name, or a YAML file by path."""
    return _load(name, ())


def default_recipe(overrides: Mapping[str, Any]) -> str:
    """The recipe that has the name of the data set asked for, with 16 tasks where it says so, or else `quickstart`."""
    wanted, packaged = str(overrides.get("data.name")), packaged_names()
    return next((name for name in (wanted, f"{wanted}_16") if name in packaged), "quickstart")


def _load(name: str, asking: tuple[str, ...]) -> Recipe:
    if name in asking:
        raise InputError(f"recipe {asking[0]} is like itself: {' -> '.join([*asking, name])}")
    packaged, path = packaged_names(), Path(name)
    if name in packaged:
        text = (files("episodica") / "recipes" / f"{name}.yaml").read_text()
        return _parse(name, text, (*asking, name))
    if not path.is_file():
        raise InputError(f'unknown recipe "{name}", and there is no such file: {nearest(name, packaged)}')
    try:
        with path.open("rb") as file:
            text = file.read(MOST_YAML + 1)
    except OSError as error:
        raise InputError(f"cannot read the recipe {path}: {error}") from None
    return _parse(path.stem, text, (*asking, name))


def _parse(name: str, text: str | bytes, asking: tuple[str, ...]) -> Recipe:
    try:
        tree = parse_yaml(text) or {}
    except ParseError as error:
        raise InputError(f"recipe {name} {error}") from None
    if not isinstance(tree, dict):
        raise InputError(f"recipe {name} must be a mapping of config keys, not {type(tree).__name__}")
    like, about = tree.pop("like", None), str(tree.pop("about", ""))
    model = Recipe(name) if like is None else _load(str(like), asking)
    groups = (*_cases(name, tree.pop("cases", {})), *_axes(name, tree.pop("axes", {})))
    own = flatten(tree)
    base = _without_replaced(model.base, own) | own
    return replace(model, name=name, about=about, base=base, groups=groups or model.groups)


def _without_replaced(base: Flat, own: Flat) -> Flat:
    """What the other recipe says of a component is not meant for one that takes its place."""
    gone = tuple(
        f"{section}."
        for section, default in DEFAULTS.items()
        if (names := own.get(f"{section}.name")) is not None
        and not set(as_list(names)) & set(as_list(base.get(f"{section}.name", default)))
    )
    return {path: value for path, value in base.items() if not path.startswith(gone)}


def as_list(value: Any) -> list[Any]:
    """A list in a recipe is several values; all else is one."""
    return value if isinstance(value, list) else [value]


def _cases(name: str, tree: Any) -> list[Group]:
    groups = list(tree.values()) if isinstance(tree, dict) else [tree]
    if not all(isinstance(g, list) and g and all(isinstance(case, dict) for case in g) for g in groups):
        raise InputError(
            f"recipe {name}: cases must be a list of mappings from key paths to values, or several such lists by name"
        )
    return [tuple(flatten(case) for case in group) for group in groups]


def _axes(name: str, tree: Any) -> list[Group]:
    if not isinstance(tree, dict) or not all(isinstance(values, list) and values for values in flatten(tree).values()):
        raise InputError(f"recipe {name}: axes must map key paths to lists of values")
    return [tuple({path: value} for value in values) for path, values in flatten(tree).items()]
