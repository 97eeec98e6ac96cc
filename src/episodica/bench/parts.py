"""The parts of the benchmark by name: each is the function of that name in the module of that name."""

from collections.abc import Iterator
from importlib import import_module
from typing import Literal

from episodica.bench.section import Section
from episodica.bench.timing import Effort

Name = Literal["start", "training", "evaluation", "data", "photos", "growth", "side_by_side"]
BY_DEFAULT: tuple[Name, ...] = ("start", "training", "evaluation", "data")


def measure(name: Name, effort: Effort) -> Iterator[Section]:
    return getattr(import_module(f"episodica.bench.{name}"), name)(effort)
