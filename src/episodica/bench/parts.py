"""The parts of the benchmark by name."""

from collections.abc import Callable, Iterator
from typing import Literal

from episodica.bench.data import data
from episodica.bench.evaluation import evaluation
from episodica.bench.growth import growth
from episodica.bench.section import Section
from episodica.bench.timing import Effort
from episodica.bench.training import training

Name = Literal["training", "evaluation", "data", "growth"]
PARTS: dict[Name, Callable[[Effort], Iterator[Section]]] = {
    "training": training,
    "evaluation": evaluation,
    "data": data,
    "growth": growth,
}
BY_DEFAULT: tuple[Name, ...] = ("training", "evaluation", "data")
