"""One kind of hostile input: how it is made, and what reads it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hypothesis.strategies import SearchStrategy

from episodica.errors import InputError

MIB = 1 << 20
Read = Callable[[bytes], object]  # an answer, or one of the kind's refusals


@dataclass(frozen=True)
class Kind:
    name: str
    inputs: SearchStrategy[bytes]
    reader: Callable[[Path], AbstractContextManager[Read]]  # in a folder of its own, for many inputs
    refusals: tuple[type[Exception], ...] = (InputError,)
    seconds: float = 10  # of computing that one input may take
    memory: int = 256 * MIB  # and how much more than before


def reading(read: Callable[[bytes, Path], object]) -> Callable[[Path], AbstractContextManager[Read]]:
    """A reader that needs nothing but a folder."""

    @contextmanager
    def reader(place: Path) -> Iterator[Read]:
        yield lambda data: read(data, place)

    return reader
