"""The images that people bring, by class, and what was found out on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from episodica.data.decode import Encoded
from episodica.errors import listed

NAMED = 10  # images that a message names


class LeftOut(NamedTuple):
    """An image that is not learned from, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True)
class Incoming:
    """Every image of `classes` can be read, and none is there twice."""

    classes: Mapping[str, Sequence[Encoded]]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()  # how it was understood, for a person to check

    def count_left_out(self) -> str:
        count = len(self.left_out)
        images = count + sum(map(len, self.classes.values()))
        return f"{count} of {images} images {'is' if count == 1 else 'are'} left out"

    def summary(self) -> str:
        """What was left out, in one sentence of bounded length."""
        return f"{self.count_left_out()}: {listed([str(one) for one in self.left_out], NAMED, '; ')}"
