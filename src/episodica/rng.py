"""Every random draw takes a generator from here, derived from what it is for.

A draw depends on its key alone, never on what was drawn before it. So a run that is continued at step 500 draws what
the uninterrupted run drew, without any random state in its checkpoints, and nothing touches torch's global state.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b

from episodica.lazy_torch import Generator, torch

Generators = Callable[[str], Generator]
"""A generator for each name: the engine has bound seed and session."""


@dataclass(frozen=True)
class StepGenerators:
    """A generator for each name that a step draws for, and how much of the session lies behind that step."""

    seed: int
    session: int
    step: int
    steps: int

    def __call__(self, name: str) -> Generator:
        return generator(self.seed, self.session, self.step, name)

    @property
    def done(self) -> float:
        return self.step / self.steps


def generator(*key: int | str) -> Generator:
    return torch.Generator().manual_seed(seed_of(*key))


@contextmanager
def seeded(*key: int | str) -> Iterator[None]:
    """torch's global generator seeded by the key inside, untouched outside: for initialisation of layers."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed_of(*key))
        yield


def seed_of(*key: int | str) -> int:
    return int.from_bytes(blake2b(repr(key).encode(), digest_size=8).digest(), "big") >> 1
