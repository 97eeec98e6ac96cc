"""A bank of random views: a few of each image, decided once a session, so that the old model's answers can be kept.

Fresh random views would have the old model embed every image of every step anew. What a view looks like is eight
numbers; only those are stored, and pixels are made when they are drawn.
"""

import torch
from torch import Generator, Tensor

from episodica.data.augment import Draws
from episodica.engine.access import SessionAccess
from episodica.engine.embedder import CHUNK, folded
from episodica.learners.learner import Learner


class ViewBank:
    """View v of the i-th permitted image has the number i * each + v."""

    def __init__(self, access: SessionAccess, each: int, g: Generator) -> None:
        self._access, self._each, self._rows = access, each, access.rows
        self._place = torch.full((int(self._rows.max()) + 1,), -1)
        self._place[self._rows] = torch.arange(len(self._rows))
        self._draws = Draws.of(len(self), g)

    def __len__(self) -> int:
        return self._each * len(self._rows)

    def choose(self, rows: Tensor, g: Generator) -> Tensor:
        """One view of each image, all equally likely."""
        self._access.require(rows)
        return self._place[rows] * self._each + torch.randint(self._each, rows.shape, generator=g)

    def pixels(self, views: Tensor) -> Tensor:
        return self._access.views(self._rows[views // self._each], self._draws.among(views))


class KeptEmbeddings:
    """The old model's embeddings of views, computed in chunks of fixed content when one of them is first asked for.

    So their bits do not depend on the order of the questions, nor on the step at which a run was continued.
    """

    def __init__(self, learner: Learner, bank: ViewBank) -> None:
        self._learner, self._bank = folded(learner), bank
        self._known = torch.zeros(-(-len(bank) // CHUNK), dtype=torch.bool)
        self._table = torch.empty(0)

    def __getitem__(self, views: Tensor) -> Tensor:
        chunks = (views // CHUNK).unique()
        for chunk in chunks[~self._known[chunks]].tolist():
            self._fill(chunk)
        return self._table[views.to(self._table.device)]

    @torch.no_grad()
    def _fill(self, chunk: int) -> None:
        numbers = torch.arange(chunk * CHUNK, min((chunk + 1) * CHUNK, len(self._bank)))
        found = self._learner.embed(self._bank.pixels(numbers))
        if not len(self._table):
            self._table = found.new_empty(len(self._bank), *found.shape[1:])
        self._table[numbers.to(found.device)] = found
        self._known[chunk] = True
