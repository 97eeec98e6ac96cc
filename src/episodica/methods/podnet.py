"""PODNet (Douillard, Cord, Ollion, Robert, Valle, ECCV 2020) as a baseline that learns a representation.

Each class has several proxies and is scored by a soft choice among them (local similarity classifier). The pooled maps
of every block, and the embedding, must stay near the previous network's (pooled outputs distillation). At the end of a
session the classifier alone is tuned on class-balanced batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import cos, e, log, pi, sqrt
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from episodica.config.sections import TrainConfig
from episodica.lazy_torch import F, Optimizer, Tensor, nn, torch
from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.methods.batches import (
    NO_EPISODES,
    arrived,
    batch_steps,
    draw_balanced_batch,
    draw_batch,
    draw_of_each,
)
from episodica.methods.heads import features, uniform
from episodica.methods.method import Method, Step, require_vectors
from episodica.rng import StepGenerators
from episodica.types import Batch, Pools, Shape

UNIT = log(e - 1)  # softplus of it is 1


class PODNet(Method, name="podnet"):
    """Several proxies a class, and distillation of the pooled maps of every block."""

    replays: ClassVar[bool] = True
    ignores: ClassVar[tuple[str, ...]] = NO_EPISODES
    exemplars: ClassVar[str | None] = "herding"
    centroids: ClassVar[str] = "normalised"

    batch: Annotated[int, Field(ge=2, description="images of a step")] = 128
    lr: Annotated[float, Field(gt=0, description="learning rate, falling to 0 along a cosine")] = 0.1
    momentum: Annotated[float, Field(ge=0, lt=1, description="of SGD")] = 0.9
    weight_decay: Annotated[float, Field(ge=0, description="of SGD, on the whole network")] = 5e-4
    proxies: Annotated[int, Field(ge=1, description="proxies of a class")] = 10
    nca: Annotated[
        Literal["paper", "released"],
        Field(description="classification loss with a margin on the own class, or as in the released code"),
    ] = "paper"
    margin: Annotated[
        float, Field(ge=0, description="of the paper's classification loss; the released one has none")
    ] = 0.6
    spatial: Annotated[float, Field(ge=0, description="weight of POD-spatial, times sqrt(seen / new classes)")] = 3.0
    flat: Annotated[float, Field(ge=0, description="weight of POD-flat, times sqrt(seen / new classes)")] = 1.0
    tuning: Annotated[
        float, Field(ge=0, lt=1, description="last share of a session in which the classifier alone is tuned")
    ] = 0.1
    tuning_lr: Annotated[float, Field(gt=0, description="learning rate of that tuning")] = 0.05

    weight: nn.Parameter = field(init=False)  # [C, proxies, D]
    raw_scale: nn.Parameter = field(init=False)
    new_classes: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.weight, self.raw_scale = nn.Parameter(torch.empty(0, 0, 0)), nn.Parameter(torch.tensor(UNIT))
        self.register_buffer("new_classes", torch.tensor(0))

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        require_vectors(learner, "it learns an embedding for a nearest-centroid classifier")

    def steps(self, episodic: int, shape: Shape) -> int:
        return batch_steps(episodic, shape, self.batch)

    def optimizer(self, parameters: list[nn.Parameter], train: TrainConfig) -> Optimizer:
        return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)

    @property
    def _end_of_learning(self) -> float:
        """The share of the session after which the classifier alone is tuned; there is no need to in the first."""
        return 1.0 if len(self.weight) == self.new_classes else 1 - self.tuning

    def _tunes(self, done: float) -> bool:
        return done >= self._end_of_learning

    def rate(self, step: int, steps: int, train: TrainConfig) -> float:
        done = step / steps
        return self.tuning_lr if self._tunes(done) else self.lr * (1 + cos(pi * done / self._end_of_learning)) / 2

    def begin(self, access: Access, pools: Pools) -> None:
        """Proxies of the first classes are random, those of later ones start at images of their class."""
        g = access.rng("classifier")
        self.new_classes.fill_(len(pools.current))
        if pools.past is None:
            one = features(access, pools.current.images()[:1])
            shape = (len(pools.current), self.proxies, one.shape[1])
            self.weight = nn.Parameter(uniform(shape, 1 / sqrt(one.shape[1]), g, one))
            return
        rows = draw_of_each(pools.current, self.proxies, g)
        starts = F.normalize(features(access, rows.flatten()), dim=-1).unflatten(0, tuple(rows.shape))
        old = self.weight.detach()
        self.weight = nn.Parameter(torch.cat([old, starts * old.norm(dim=-1).mean()]))

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Batch]:
        draw = draw_balanced_batch if self._tunes(rng.done) else draw_batch
        return {"mix": draw(arrived(pools), self.batch, rng("mix"))}

    def loss(self, step: Step) -> dict[str, Tensor]:
        """L_LSC + POD-spatial, mean over blocks that train, + POD-flat; adaptive factor sqrt(seen / new classes).

        POD-flat is the squared distance of embeddings of length 1, halved: 1 - <h'*, h'>.
        """
        new = step.new_batches["mix"]
        if self._tunes(step.rng.done):
            return {"tune": self._nca(new.features.detach(), new.labels)}
        terms = {"classify": self._nca(new.features, new.labels)}
        if step.teacher is not None:
            old = step.old_batches["mix"]
            growth = sqrt(len(self.weight) / self.new_classes.item())
            pooled = [pod_spatial(a, b) for a, b in zip(new.maps, old.maps, strict=True)]
            if pooled:  # none where no block trains
                terms["pod_spatial"] = self.spatial * growth * torch.stack(pooled).mean()
            terms["pod_flat"] = self.flat * growth * (1 - F.cosine_similarity(new.features, old.features)).mean()
        return terms

    def _nca(self, features: Tensor, labels: Tensor) -> Tensor:
        """L_LSC: max(log sum_{i != y} exp(scale s_i) - scale (s_y - margin), 0): the own class against all others.

        The learned scale is kept positive: below zero the paper's margin alone would make the loss vanish. The released
        code takes the margin off every class, where it cancels, and counts the own class as high as the highest.
        """
        scale, own = F.softplus(self.raw_scale), labels[:, None]
        scores = scale * similarities(features.float(), self.weight)
        if self.nca == "released":
            top = scores.amax(1, keepdim=True)
            return (scores.scatter(1, own, top.expand_as(own)).logsumexp(1) - scores.gather(1, own)[:, 0]).mean()
        others = scores.scatter(1, own, -torch.inf).logsumexp(1)
        return (others - scores.gather(1, own)[:, 0] + scale * self.margin).clamp_min(0).mean()


def similarities(features: Tensor, proxies: Tensor) -> Tensor:
    """Local similarity classifier: s_c = sum_k softmax_k(<w'_ck, h'>) <w'_ck, h'> over the proxies k. [M, C]"""
    cosines = torch.einsum("md,cpd->mcp", F.normalize(features), F.normalize(proxies, dim=-1))
    return (cosines.softmax(-1) * cosines).sum(-1)


def pod_spatial(new: Tensor, old: Tensor) -> Tensor:
    """POD-width and POD-height in one: squared maps summed over rows and over columns, joined and scaled to length 1;
    the Euclidean distance of the two models, mean over images."""
    profiles = (torch.cat([m.square().sum(2).flatten(1), m.square().sum(3).flatten(1)], 1) for m in (new, old))
    a, b = (F.normalize(profile) for profile in profiles)
    return (a - b).norm(dim=1).mean()
