"""Embedding many images without gradient: once each, in evaluation mode, in chunks of a fixed size.

Fixed chunks make the result depend on the rows alone, so that a continued run computes the same bits.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import torch
from torch import Size, Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from episodica.learners.learner import Learner

Module = TypeVar("Module", bound=nn.Module)

CHUNK = 250
VALUES_KEPT = 2**29  # 2 GiB of embeddings: more are not kept, but computed when they are asked for


def embed_all(learner: Learner, rows: Tensor, pixels: Callable[[Tensor], Tensor]) -> Tensor:
    """[M] -> [M, *E] where `pixels` reads and normalises rows."""
    return embed_chunks(folded(learner), rows, pixels)


def embed_chunks(evaluated: Learner, rows: Tensor, pixels: Callable[[Tensor], Tensor]) -> Tensor:
    """The same by a learner that is folded already."""
    with torch.no_grad():
        return torch.cat([evaluated.embed(pixels(chunk)) for chunk in rows.split(CHUNK)])


def folded(learner: Module) -> Module:
    """A copy for evaluation in which every batch-norm is part of the convolution before it."""
    copy = deepcopy(learner).eval()
    for module in copy.modules():
        if isinstance(module, nn.Sequential):
            for i, (conv, norm) in enumerate(pairwise(list(module))):
                if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                    module[i], module[i + 1] = fuse_conv_bn_eval(conv, norm), nn.Identity()
    return copy


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

    def __len__(self) -> int:
        return len(self.table)

    @property
    def shape(self) -> Size:
        """Of one embedding: *E."""
        return self.table.shape[1:]

    def __getitem__(self, rows: Tensor) -> Tensor:
        places = self.place[rows]
        assert bool((places >= 0).all()), "a row that was not embedded"
        return self.table[places.to(self.table.device)]


@dataclass(frozen=True, eq=False)
class EmbeddedWhenAsked:
    """Images of which all embeddings together would be too much."""

    embed: Callable[[Tensor], Tensor]
    shape: Size

    def __getitem__(self, rows: Tensor) -> Tensor:
        distinct, places = rows.unique(return_inverse=True)
        embeddings = self.embed(distinct)
        return embeddings[places.to(embeddings.device)]
