"""Recipes: a config plus, where wanted, axes and cases that make it a grid of runs.

    about: one line for `episodica list recipes`
    stream: {tasks: 5}                       # any part of the config tree, nested or as `stream.tasks: 5`
    axes: {seed: [0, 1]}                     # every value of every axis with every other
    cases: [{method.name: ft}, {method.name: joint, train.episodes_per_step: 2}]     # alternatives, as they are

A list where the config wants one value is an axis too, so `--seed "[0, 1, 2]"` repeats a recipe over seeds.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from episodica.config import DEFAULTS, SECTION_KINDS, RunConfig, field_at, resolve
from episodica.errors import InputError, nearest
from episodica.registry import components, settings_of

Flat = dict[str, Any]  # key path -> value


@dataclass(frozen=True)
class Recipe:
    name: str
    about: str = ""
    base: Flat = field(default_factory=dict)
    axes: Flat = field(default_factory=dict)
    cases: tuple[Flat, ...] = ({},)


def packaged_recipes() -> dict[str, Recipe]:
    folder = files("episodica") / "recipes"
    names = sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return {name: _parse(name, (folder / f"{name}.yaml").read_text()) for name in names}


def load_recipe(name: str) -> Recipe:
    """A packaged recipe by name, or a YAML file by path."""
    packaged = packaged_recipes()
    if name in packaged:
        return packaged[name]
    path = Path(name)
    if not path.is_file():
        raise InputError(f'unknown recipe "{name}", and there is no such file: {nearest(name, packaged)}')
    try:
        return _parse(path.stem, path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the recipe {path}: {error}") from None


def default_recipe(overrides: Mapping[str, Any]) -> str:
    """The recipe that has the name of the data set asked for, with 16 tasks where it says so, or else `quickstart`."""
    wanted, packaged = str(overrides.get("data.name")), packaged_recipes()
    return next((name for name in (wanted, f"{wanted}_16") if name in packaged), "quickstart")


def _parse(name: str, text: str) -> Recipe:
    try:
        tree = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise InputError(f"recipe {name} is not valid YAML: {error}") from None
    if not isinstance(tree, dict):
        raise InputError(f"recipe {name} must be a mapping of config keys, not {type(tree).__name__}")
    cases, axes = tree.pop("cases", [{}]), tree.pop("axes", {})
    if not isinstance(cases, list) or not cases or not all(isinstance(case, dict) for case in cases):
        raise InputError(f"recipe {name}: cases must be a list of mappings from key paths to values")
    if not isinstance(axes, dict) or not all(isinstance(values, list) and values for values in axes.values()):
        raise InputError(f"recipe {name}: axes must map key paths to lists of values")
    about = str(tree.pop("about", ""))
    return Recipe(name, about, flatten(tree), flatten(axes), tuple(flatten(case) for case in cases))


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Flat:
    """{"a": {"b": 1}, "c.d": 2} -> {"a.b": 1, "c.d": 2}"""
    flat: Flat = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def nest(flat: Flat) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *sections, key = path.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
            if not isinstance(place, dict):
                raise InputError(f"{path}: {section} has a value already and cannot have parts")
        place[key] = value
    return tree


def plan(recipe: Recipe, overrides: Mapping[str, Any]) -> list[RunConfig]:
    """The runs of a recipe, each once. Component names on the command line choose among the cases that name any; every
    other override takes the place of what recipe, axes and cases say."""
    overrides = flatten(overrides)
    names = {path: value for path, value in overrides.items() if path.endswith(".name")}
    values = {path: value for path, value in overrides.items() if path not in names}
    axes = {path: axis for path, axis in recipe.axes.items() if path not in overrides}
    trees = [
        _without_fields_of_others(tree, recipe.base, {*case, *values, *axes})
        for case in _agreeing(recipe.cases, names)
        for tree in _points(recipe.base | names | case | values, axes)
    ]
    runs = {config.run_id: config for config in (resolve(nest(tree)) for tree in _for_each_component(trees))}
    return list(runs.values())


def _agreeing(cases: Sequence[Flat], names: Flat) -> list[Flat]:
    """The cases that have a wanted name wherever they say anything, and a bare one for each name that none has."""
    wanted = {path: value if isinstance(value, list) else [value] for path, value in names.items()}
    agreeing = [case for case in cases if all(value in wanted.get(path, [value]) for path, value in case.items())]
    bare = [
        {path: value}
        for path, values in wanted.items()
        for value in values
        if any(path in case for case in cases) and not any(case.get(path) == value for case in agreeing)
    ]
    return agreeing + bare or [{}]


def _points(flat: Flat, axes: Flat) -> Iterator[Flat]:
    """Every combination of the values of the axes."""
    axes = axes | {path: value for path, value in flat.items() if _is_axis(path, value)}
    for values in product(*axes.values()):
        yield flat | dict(zip(axes, values, strict=True))


def _without_fields_of_others(tree: Flat, base: Flat, given: Collection[str]) -> Flat:
    """What a recipe says of a component is not meant for another one that was asked for in its place."""
    replaced = [
        section
        for section, default in DEFAULTS.items()
        if tree.get(f"{section}.name", default) != base.get(f"{section}.name", default)
    ]
    meant = {path for path in base if path.partition(".")[0] not in replaced or path.endswith(".name")}
    return {path: value for path, value in tree.items() if path in meant or path in given or path not in base}


def _is_axis(path: str, value: Any) -> bool:
    if not isinstance(value, list):
        return False
    if not value:
        raise InputError(f"{path}: an empty list gives no run at all")
    annotation = field_at(path)
    return annotation is None or not _accepts(annotation, value)


def _accepts(annotation: Any, value: Any) -> bool:
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return True


def _for_each_component(trees: Sequence[Flat]) -> Iterable[Flat]:
    """A field of one method of the grid (`method.p`) is left out of the runs of methods that do not have it."""
    known = {section: [_fields(section, tree.get(f"{section}.name")) for tree in trees] for section in SECTION_KINDS}
    for i, tree in enumerate(trees):
        foreign = {
            path
            for path in tree
            for section, _, key in [path.partition(".")]
            if section in known and key not in known[section][i] and any(key in keys for keys in known[section])
        }
        yield {path: value for path, value in tree.items() if path not in foreign}


def _fields(section: str, name: str | None) -> frozenset[str]:
    component = components(SECTION_KINDS[section]).get(name or DEFAULTS[section])
    return frozenset(settings_of(component).model_fields if component else ())
