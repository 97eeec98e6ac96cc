"""Variants of one method beside each other: which field was varied, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from episodica.config.flat import flatten
from episodica.report.aggregate import Line
from episodica.report.comparison import identity


@dataclass(frozen=True)
class Family:
    """Fields that are varied together, perhaps at several values of others; silent ones follow and are not shown."""

    heading: str
    fields: tuple[str, ...]
    at: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


FAMILIES = (
    Family("share P of past classes in the cross-task sub-episode", ("method.p",)),
    Family("strategy and share P", ("method.strategy",), at=("method.p",)),
    Family("weights of distillation, lambda_m / lambda_e", ("method.lambda_m", "method.lambda_e")),
    Family("exemplars a class", ("memory.per_class",)),
    Family("exemplars in all", ("memory.total",), silent=("memory.per_class",)),
    Family("choice of exemplars", ("memory.select",)),
    Family(
        "exemplars in distillation / in the meta loss",
        ("method.exemplars_in_distillation", "method.exemplars_in_meta_loss"),
    ),
)


@dataclass(frozen=True)
class Ablation:
    method: str
    family: Family
    members: tuple[tuple[str, Line], ...]  # the value shown, and the line that has it

    @property
    def lines(self) -> list[Line]:
        return [line for _, line in self.members]

    @property
    def numeric(self) -> bool:
        """Whether the values lie on one axis, so that a line between them means something."""
        return all(value.replace(".", "", 1).isdigit() for value, _ in self.members)

    @property
    def name(self) -> str:
        """Of its files."""
        return "-".join([self.method, *(path.split(".")[-1] for path in self.family.fields)])


def principal(lines: Sequence[Line]) -> list[Line]:
    """The bounds, and of every method the line that is nearest to its defaults."""
    bases = {method: _base(lines, method) for method in _methods(lines)}
    return [line for line in lines if line.bound or line is bases[line.config.method.name]]


def ablations(lines: Sequence[Line]) -> tuple[list[Ablation], list[Line]]:
    """What was varied for each method, and the lines that vary in too many ways to be part of any."""
    found: list[Ablation] = []
    for method in _methods(lines):
        base = _base(lines, method)
        varied = {line: _apart(base, line) for line in lines if line.config.method.name == method}
        known = {path for family in FAMILIES for path in family.fields}
        single = {path for paths in varied.values() if len(paths) == 1 for path in paths} - known
        for family in (*FAMILIES, *(Family(path, (path,)) for path in sorted(single))):
            members = _members(varied, base, family)
            if len(members) > 1:
                found.append(_ablation(method, family, members))
    shown = {*principal(lines), *(line for ablation in found for line in ablation.lines)}
    return found, [line for line in lines if line not in shown]


def _members(varied: Mapping[Line, frozenset[str]], base: Line, family: Family) -> list[Line]:
    """The lines that vary in the family's fields, the base, and what stands beside them at the same other values."""
    leading = [line for line, apart in varied.items() if _belongs(apart, family)]
    places = [_values(line, family.at) for line in leading]
    beside = [line for line, apart in varied.items() if apart <= set(family.at) and _values(line, family.at) in places]
    return [line for line in varied if line in leading or line in beside or line is base] if leading else []


def _ablation(method: str, family: Family, members: Sequence[Line]) -> Ablation:
    trees = [identity(line.config) for line in members]
    shown = [path for path in (*family.fields, *family.at) if len({str(tree[path]) for tree in trees}) > 1]
    keyed = [(tuple(_ordered(tree[path]) for path in shown), line) for tree, line in zip(trees, members, strict=True)]
    keyed.sort(key=lambda pair: pair[0])
    return Ablation(method, family, tuple((" / ".join(map(_shown, _values(line, shown))), line) for _, line in keyed))


def _shown(value: Any) -> str:
    match value:
        case None:
            return "not set"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _ordered(value: Any) -> tuple[bool, float, str]:
    """Numbers before words."""
    number = isinstance(value, int | float)
    return (not number, float(value) if number else 0.0, str(value))


def _belongs(apart: frozenset[str], family: Family) -> bool:
    return bool(apart & set(family.fields)) and apart <= {*family.fields, *family.at, *family.silent}


def _values(line: Line, paths: Sequence[str]) -> list[Any]:
    return [identity(line.config).get(path) for path in paths]


def _methods(lines: Sequence[Line]) -> list[str]:
    return list(dict.fromkeys(line.config.method.name for line in lines if not line.bound))


def _base(lines: Sequence[Line], method: str) -> Line:
    own = [line for line in lines if line.config.method.name == method]
    return min(own, key=lambda line: len(flatten(line.config.chosen()).keys() & identity(line.config).keys()))


def _apart(base: Line, line: Line) -> frozenset[str]:
    one, two = identity(base.config), identity(line.config)
    return frozenset(path for path in {*one, *two} if one.get(path) != two.get(path))
