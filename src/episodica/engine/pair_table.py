"""For learners that relate images in pairs: of a small pool, every pair once instead of again in every episode."""

from dataclasses import dataclass

import torch
from torch import Tensor

from episodica.engine.embedder import Embeddings
from episodica.learners.learner import Learner
from episodica.types import Shape

VALUES_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class PairTable:
    """The score of every image as a query against every image as the support of a class."""

    scores: Tensor  # [M, M]: query, support
    place: Tensor  # row of the store -> row of the table

    @classmethod
    def of(cls, learner: Learner, embeddings: Embeddings) -> "PairTable":
        table = embeddings.table
        prototypes = learner.prototypes(table[None, :, None])  # M classes of one image each
        at_once = max(1, VALUES_AT_ONCE // (len(table) * learner.pair_values(embeddings.shape)))
        scores = [learner.scores(prototypes, queries[None])[0] for queries in table.split(at_once)]
        return cls(torch.cat(scores).cpu(), embeddings.place)

    def answers(self, rows: Tensor, shots: int) -> Tensor:
        """Of each query, the class whose support images it is related to most. [B, N, K + Q] -> [B, N * Q]"""
        places = self.place[rows]
        support, query = places[:, :, :shots], places[:, :, shots:].flatten(1)
        return self.scores[query[:, :, None, None], support[:, None]].mean(-1).argmax(-1)


def worthwhile(learner: Learner, images: int, way: int, shape: Shape) -> bool:
    """Whether the episodes of this shape relate more pairs than a pool of so many images has."""
    pairs = shape.episodes * way * shape.shots * way * shape.queries
    return learner.pairwise(shape.shots) and images**2 <= pairs
