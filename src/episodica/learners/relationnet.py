"""Relation Networks (Sung, Yang, Zhang, Xiang, Torr, Hospedales 2018), equations 9-10 of the ERD paper.

Embeddings are feature maps. A small network, the relation module, looks at the maps of a support image and a query
side by side and says how related they are, from 0 to 1. Encoder and relation module learn together, by squared error.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from episodica.lazy_torch import F, Size, Tensor, nn, torch
from episodica.learners.learner import Learner
from episodica.losses import squared_error
from episodica.models.conv4 import block
from episodica.types import Embedded

CHANNELS, HIDDEN = 64, 8
SMALLEST_MAP = 4  # the relation module halves it twice


class RelationNet(Learner, name="relationnet"):
    """A learned comparison of feature maps instead of a distance; scores are relations from 0 to 1."""

    exemplars: ClassVar[str] = "random"
    logits: ClassVar[bool] = False
    vectors: ClassVar[bool] = False

    shots: Annotated[
        Literal["pairs", "mean", "sum"],
        Field(
            description="several shots: relate the query to every support image and average the scores (eq. 9-10), or "
            "relate it once to the mean or sum of their maps (published code)"
        ),
    ] = "pairs"
    error: Annotated[
        Literal["pairs", "scores"],
        Field(
            description="several shots: the losses compare the relations to every support image (eq. 9-10), or the "
            "scores of the classes, which are their means"
        ),
    ] = "pairs"
    relation: nn.Sequential = field(init=False)

    def check(self, size: int) -> None:
        side = self.backbone.map_shape(size)[1]
        if side < SMALLEST_MAP:
            needed = self.backbone.smallest_for(SMALLEST_MAP)
            raise ValueError(
                f"{self.name} relates maps of {SMALLEST_MAP} x {SMALLEST_MAP} or more, and {self.backbone.name} gives "
                f"{side} x {side} for images of {size} px: use a backbone that pools less (name: conv4 with "
                f"backbone.pools: 2), or set augment.size to {needed} or more"
            )

    def build_for(self, size: int) -> None:
        channels, side, _ = self.backbone.map_shape(size)
        self.relation = nn.Sequential(
            block(2 * channels, CHANNELS),
            block(CHANNELS, CHANNELS),
            nn.Flatten(),
            nn.Linear(CHANNELS * (side // 4) ** 2, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, 1),
            nn.Sigmoid(),
        )

    def embed(self, images: Tensor) -> Tensor:  # [M, 3, S, S] -> [M, C, side, side]
        return self.backbone.last_maps(images)

    def prototypes(self, support: Tensor) -> Tensor:  # [B, N, K, *E] -> [B, N, K or 1, *E]
        if self.shots == "pairs":
            return support
        return support.float().mean(2, keepdim=True) if self.shots == "mean" else support.float().sum(2, keepdim=True)

    def scores(self, prototypes: Tensor, queries: Tensor) -> Tensor:
        """The mean relation of each query to the maps that stand for each class."""
        return self.relations(prototypes, queries).mean(-1)

    def answers(self, episodes: Embedded) -> Tensor:  # [B, N * Q, N, K or 1], or [B, N * Q, N]
        relations = self.relations(self.prototypes(episodes.support), episodes.query)
        return relations if self.error == "pairs" else relations.mean(-1)

    def relations(self, prototypes: Tensor, queries: Tensor) -> Tensor:  # queries [B, M, *E] -> [B, M, N, K or 1]
        """Of each query to each of the maps that stand for a class, in fp32.

        The first layer is linear in the two maps that it sees side by side: each half of its weight meets every image
        once instead of once a pair, and the pair gets the sum.
        """
        conv = self._first
        with torch.autocast(queries.device.type, enabled=False):
            of_support, of_query = conv.weight.chunk(2, dim=1)
            support = _each(prototypes, of_support, conv.bias)  # [B, N, K, 64, side, side]
            return self._relations(support, _each(queries, of_query, None))

    @property
    def _first(self) -> nn.Conv2d:
        first, *_ = self.relation
        assert isinstance(first, nn.Sequential)
        conv, *_ = first
        assert isinstance(conv, nn.Conv2d)
        return conv

    def _relations(self, support: Tensor, query: Tensor) -> Tensor:
        """Of what the first layer's halves gave. [B, N, K, 64, side, side], [B, M, 64, side, side] -> [B, M, N, K]"""
        first, *others = self.relation
        assert isinstance(first, nn.Sequential)
        x = (query[:, :, None] + support.flatten(1, 2)[:, None]).flatten(0, 2)
        _, *rest = first
        for layer in (*rest, *others):
            x = layer(x)
        return x.view(*query.shape[:2], *support.shape[1:3])

    def pairwise(self, shots: int) -> bool:
        return self.shots == "pairs" or shots == 1

    def for_evaluation(self) -> RelationNet:
        halved = _Halved(backbone=self.backbone, shots=self.shots, error=self.error)
        halved.relation = self.relation
        return halved.train(self.training)

    def pair_values(self, embedding: Size) -> int:
        return CHANNELS * embedding[-2:].numel()

    def meta_loss(self, answers: Tensor, labels: Tensor) -> Tensor:
        """1 for a query's own class, 0 for the others."""
        targets = F.one_hot(labels, answers.shape[2])  # [N * Q, N]
        return squared_error(answers, (targets if answers.dim() == 3 else targets[..., None]).expand_as(answers))

    def distill(self, student: Tensor, teacher: Tensor, clamp: float = 0.0) -> Tensor:
        assert not clamp, "relations are no probabilities of a softmax"
        return squared_error(student, teacher)


class _Halved(RelationNet):
    """Embeds an image as what the two halves of the relation module's first layer make of it, channels last."""

    def embed(self, images: Tensor) -> Tensor:  # [M, 3, S, S] -> [M, side, side, 64 + 64]: as support, as query
        conv, maps = self._first, super().embed(images)
        with torch.autocast(images.device.type, enabled=False):
            halves = torch.cat(conv.weight.chunk(2, dim=1))
            return F.conv2d(maps.float(), halves, padding=1).movedim(1, -1).contiguous()

    def relations(self, prototypes: Tensor, queries: Tensor) -> Tensor:
        """A half of a mean or a sum of maps is that of their halves."""
        with torch.autocast(queries.device.type, enabled=False):
            bias = self._first.bias
            assert bias is not None
            support, query = prototypes[..., :CHANNELS], queries[..., CHANNELS:] + bias
            return self._relations(support.movedim(-1, -3), query.movedim(-1, -3))

    def pair_values(self, embedding: Size) -> int:
        return CHANNELS * embedding[:2].numel()


def _each(maps: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The convolution of every map. [..., C, side, side] -> [..., 64, side, side]"""
    together = maps.float().flatten(0, -4)
    return F.conv2d(together, weight, bias, padding=1).unflatten(0, maps.shape[:-3])
