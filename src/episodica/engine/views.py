"""A bank of random views: a few of each image, decided once a session, so that the old model's answers can be kept.

Fresh random views would have the old model embed every image of every step anew. What a view looks like is eight
numbers; only those are stored, and pixels are made when they are drawn.
"""

import torch
from torch import Generator, Tensor

from episodica.data.augment import Draws
from episodica.engine.access import SessionAccess


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
