"""Embedding many images without gradient: once each, in evaluation mode, in chunks of a fixed size.

Fixed chunks make the result depend on the rows alone, so that a continued run computes the same bits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from episodica.learners.learner import Learner

CHUNK = 250


def embed_all(learner: Learner, rows: Tensor, pixels: Callable[[Tensor], Tensor]) -> Tensor:
    """[M] -> [M, *E] where `pixels` reads and normalises rows; the learner's mode is left as it was."""
    training = learner.training
    learner.eval()
    try:
        with torch.no_grad():
            return torch.cat([learner.embed(pixels(chunk)) for chunk in rows.split(CHUNK)])
    finally:
        learner.train(training)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embedded images, found by their row of the store."""

    table: Tensor  # [M, *E]
    place: Tensor  # row of the store -> row of the table

    @classmethod
    def of(cls, rows: Tensor, table: Tensor) -> "Embeddings":
        place = torch.full((int(rows.max()) + 1,), -1)
        place[rows] = torch.arange(len(rows))
        return cls(table, place)

    def __getitem__(self, rows: Tensor) -> Tensor:
        places = self.place[rows]
        assert bool((places >= 0).all()), "a row that was not embedded"
        return self.table[places.to(self.table.device)]
