"""What a search is about: one run of a recipe, measured on validation classes, and the settings that may vary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from episodica.config import SECTION_KINDS, RunConfig
from episodica.config.flat import Flat
from episodica.errors import InputError, listed
from episodica.files.foreign_text import printable
from episodica.sweep.grid import plan
from episodica.sweep.recipe import Recipe
from episodica.tune.axis import Axis, Range

VALIDATION = "stream.validation_classes"
WAYS = 2  # validation classes by default, in multiples of the classes of a question


@dataclass(frozen=True)
class Space:
    recipe: Recipe
    fixed: Flat  # settings of all tries, validation classes among them
    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, recipe: Recipe, overrides: Flat, axes: Sequence[Axis]) -> "Space":
        """Refuses what could not be tried, before anything is: every end of every axis makes a config."""
        if not axes:
            raise InputError("nothing to choose: name a setting and its range, such as --over method.p=0:1")
        paths = [axis.path for axis in axes]
        twice = sorted({path for path in paths if paths.count(path) > 1 or path in overrides})
        if twice:
            raise InputError(f"{listed(twice)} is set twice: fix it, or search over it once")
        space = cls(recipe, overrides | _validation(recipe, overrides), tuple(axes))
        return replace(space, axes=tuple(map(space._fitted, axes)))

    def _fitted(self, axis: Axis) -> Axis:
        """Where only some numbers of a range make a config, such as shares of a 5-way episode, those alone."""
        for value in axis.ends:
            self.config({**self.usual, axis.path: value})
        if not isinstance(axis, Range) or not axis.continuous:
            return axis
        try:
            self.config({**self.usual, axis.path: axis.between})
        except InputError:
            fitted = axis.in_steps([part for part in axis.parts() if self._is_config(axis, part)])
            if fitted is None:
                raise
            return fitted
        return axis

    def _is_config(self, axis: Axis, value: float) -> bool:
        try:
            self.config({**self.usual, axis.path: value})
        except InputError:
            return False
        return True

    @property
    def usual(self) -> Flat:
        """Some value of every axis."""
        return {axis.path: axis.ends[0] for axis in self.axes}

    @property
    def validation_classes(self) -> int:
        return self.fixed[VALIDATION]

    def config(self, values: Mapping[str, Any]) -> RunConfig:
        """The run of one try; with twelve digits of each number, so that steps of 0.2 lead to 0.6.

        Values may come from a journal that somebody else has written, and name what was never asked for.
        """
        for axis in self.axes:
            value = values.get(axis.path)
            if not axis.holds(value):
                raise InputError(
                    f"{axis.path} = {printable(str(value))} is not in {axis}: the journal is damaged or of another "
                    "search; choose another output folder"
                )
        rounded = {path: float(f"{v:.12g}") if isinstance(v, float) else v for path, v in values.items()}
        return _only_run(self.recipe, self.fixed | rounded)

    def describe(self) -> dict[str, Any]:
        """What a search that is continued must have in common with this one."""
        return {"config": self.config(self.usual).decisive(), "axes": [str(axis) for axis in self.axes]}

    def best_recipe(self, values: Mapping[str, Any], about: str) -> dict[str, Any]:
        """A recipe of the chosen settings for the meta-test classes, which no try has seen."""
        config = replace(self, fixed={**self.fixed, VALIDATION: 0}).config(values)
        tree = config.chosen()
        for section in SECTION_KINDS:
            tree[section] = {"name": getattr(config, section).name, **tree.get(section, {})}
        return {"about": about, **{key: value for key, value in tree.items() if value != {}}}


def _validation(recipe: Recipe, overrides: Flat) -> Flat:
    config = _only_run(recipe, overrides)
    asked = config.stream.validation_classes
    if VALIDATION in {**recipe.base, **overrides} and not asked:
        raise InputError(
            f"{VALIDATION} = 0 would choose settings on the meta-test classes, which are for the end: give a number of "
            "classes, or leave it out"
        )
    return {VALIDATION: asked or WAYS * config.shape.way}


def _only_run(recipe: Recipe, overrides: Flat) -> RunConfig:
    configs = plan(recipe, overrides)
    if len(configs) > 1:
        names = sorted({config.method.name for config in configs})
        which = (
            f"one of its methods with --method.name ({listed(names)})" if len(names) > 1 else "one value of each axis"
        )
        raise InputError(
            f"recipe {recipe.name} stands for {len(configs)} runs, and a search is about one: choose {which}"
        )
    return configs[0]
