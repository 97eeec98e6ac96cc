"""Parts and repetitions of a recipe: `--only method.name=erd,ft`, `--orders 3`, `--seeds 3`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from episodica.config import RunConfig, paths
from episodica.config.flat import Flat, flatten
from episodica.errors import InputError, nearest
from episodica.files.parsing import ParseError, parse_yaml

MOST_RUNS = 10_000  # of one command


class Only(NamedTuple):
    """Runs that have one of some values at a key path."""

    path: str
    values: list[Any]

    @classmethod
    def parse(cls, text: str) -> "Only":
        """method.name=erd,ft; values are read as YAML."""
        path, equals, values = text.partition("=")
        try:
            found = parse_yaml(f"[{values}]")
        except ParseError:
            found = []
        if not equals or not found:
            raise InputError(f"--only {text}: write a key path and values, such as --only method.name=erd,ft")
        return cls(path.strip(), found)

    def __str__(self) -> str:
        return f"{self.path}={','.join(map(str, self.values))}"


class Part(NamedTuple):
    """One of several shares of a grid, for jobs that know nothing of each other: `3/16`."""

    number: int  # counted from 1
    of: int

    @classmethod
    def parse(cls, text: str) -> "Part":
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise InputError(f"--part {text}: write which part of how many, counted from 1, such as --part 3/16")
        return cls(int(number), int(of))

    def take(self, configs: Sequence[RunConfig]) -> list[RunConfig]:
        """Every n-th run: neighbours, which often take as long, are spread over the parts."""
        return list(configs[self.number - 1 :: self.of])

    def __str__(self) -> str:
        return f"part {self.number} of {self.of}"


def selected(configs: Sequence[RunConfig], only: Sequence[Only]) -> list[RunConfig]:
    """The runs that agree with every condition; one without the field (FT has no `method.p`) does not."""
    known, left = paths(), [(config, flatten(config.tree())) for config in configs]
    for condition in only:
        if condition.path not in known:
            raise InputError(f"only {condition}: no run has {condition.path}; {nearest(condition.path, known)}")
        there = list(dict.fromkeys(repr(tree[condition.path]) for _, tree in left if condition.path in tree))
        left = [(config, tree) for config, tree in left if _agrees(tree, condition)]
        if not left:
            raise InputError(f"only {condition} leaves no run: there is {', '.join(there) or 'no such field'}")
    return [config for config, _ in left]


def _agrees(tree: Flat, condition: Only) -> bool:
    return condition.path in tree and tree[condition.path] in condition.values


def repeated(overrides: Flat, orders: int | None, seeds: int | None) -> Flat:
    """The overrides with class orders 0, 1, ... and seeds 0, 1, ... as axes."""
    for option, path, count in (("orders", "stream.seed", orders), ("seeds", "seed", seeds)):
        if count is None:
            continue
        if count < 1:
            raise InputError(f"{option} = {count}: how often to repeat is 1 or more")
        if count > MOST_RUNS:
            raise InputError(f"{option} = {count}: a command has {MOST_RUNS:,} runs at most; repeat less often")
        if path in overrides:
            raise InputError(f"{option} = {count} and {path} = {overrides[path]} both choose: give one of them")
        overrides = overrides | {path: list(range(count))}
    return overrides
