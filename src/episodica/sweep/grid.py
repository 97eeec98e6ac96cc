"""From a recipe and what the user asks for to the runs they stand for."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from episodica.config import DEFAULTS, SECTION_KINDS, RunConfig, field_at, resolve
from episodica.config.flat import Flat, flatten, nest
from episodica.errors import InputError
from episodica.registry import components, settings_of
from episodica.sweep.recipe import Group, Recipe, as_list
from episodica.sweep.selection import MOST_RUNS, Only, repeated, selected

T = TypeVar("T")


def plan(
    recipe: Recipe,
    overrides: Mapping[str, Any],
    only: Sequence[Only] = (),
    orders: int | None = None,
    seeds: int | None = None,
) -> list[RunConfig]:
    """The runs of a recipe, each once. Component names among the overrides choose among the cases that name any; every
    other override takes the place of what the recipe says. `only` then picks runs by their values."""
    overrides = repeated(flatten(overrides), orders, seeds)
    names = {path: value for path, value in overrides.items() if path.endswith(".name")}
    values = {path: value for path, value in overrides.items() if path not in names}
    trees = _bounded(
        _without_fields_of_others(tree, recipe.base, {*case, *values})
        for case in _combinations([_agreeing(group, names) for group in recipe.groups])
        for tree in _points(recipe.base | names | case | values)
    )
    meant = _fields_of_any_component(recipe) - set(values)
    runs = {config.run_id: config for config in (resolve(nest(tree)) for tree in _for_each_component(trees, meant))}
    return selected(list(runs.values()), only)


def _bounded(items: Iterable[T]) -> list[T]:
    """A few short axes make a grid that no memory holds."""
    found = []
    for item in items:
        if len(found) == MOST_RUNS:
            raise InputError(f"these are more than {MOST_RUNS:,} runs, too many for one command: shorten an axis")
        found.append(item)
    return found


def _combinations(groups: Sequence[Sequence[Flat]]) -> Iterator[Flat]:
    for choice in product(*groups):
        yield {path: value for case in choice for path, value in case.items()}


def _agreeing(group: Group, names: Flat) -> list[Flat]:
    """The cases that have a wanted name wherever they say anything, and a bare one for each name that none has."""
    cases = _bounded(point for case in group for point in _points(case))
    wanted = {path: as_list(value) for path, value in names.items()}
    agreeing = [case for case in cases if all(value in wanted.get(path, [value]) for path, value in case.items())]
    bare = [
        {path: value}
        for path, values in wanted.items()
        for value in values
        if any(path in case for case in cases) and not any(case.get(path) == value for case in agreeing)
    ]
    return agreeing + bare or [{}]


def _points(flat: Flat) -> Iterator[Flat]:
    """Every combination of the values of lists that are axes."""
    axes = {path: value for path, value in flat.items() if _is_axis(path, value)}
    for values in product(*axes.values()):
        yield flat | dict(zip(axes, values, strict=True))


def _without_fields_of_others(tree: Flat, base: Flat, given: Collection[str]) -> Flat:
    """What a recipe says of a component is not meant for another one that was asked for in its place."""
    replaced = [
        section
        for section, default in DEFAULTS.items()
        if tree.get(f"{section}.name", default) not in as_list(base.get(f"{section}.name", default))
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


def _fields_of_any_component(recipe: Recipe) -> set[str]:
    """Those in cases that name no component: they are meant for whichever of the grid has them, chosen or not."""
    return {
        path
        for group in recipe.groups
        for case in group
        for path in case
        for section, _, key in [path.partition(".")]
        if section in SECTION_KINDS and f"{section}.name" not in case
        if any(key in _fields(section, name) for name in components(SECTION_KINDS[section]))
    }


def _for_each_component(trees: Sequence[Flat], meant: Collection[str]) -> Iterable[Flat]:
    """A field of one method of the grid (`method.p`) is left out of the runs of methods that do not have it."""
    known = {section: [_fields(section, tree.get(f"{section}.name")) for tree in trees] for section in SECTION_KINDS}
    for i, tree in enumerate(trees):
        foreign = {
            path
            for path in tree
            for section, _, key in [path.partition(".")]
            if section in known and key not in known[section][i]
            if path in meant or any(key in keys for keys in known[section])
        }
        yield {path: value for path, value in tree.items() if path not in foreign}


def _fields(section: str, name: str | None) -> frozenset[str]:
    component = components(SECTION_KINDS[section]).get(name or DEFAULTS[section])
    return frozenset(settings_of(component).model_fields if component else ())
