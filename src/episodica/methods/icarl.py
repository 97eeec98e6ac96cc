"""iCaRL (Rebuffi, Kolesnikov, Sperl, Lampert, CVPR 2017) as a baseline that learns a representation.

One sigmoid for each class. On current images and exemplars alike, the targets of new classes are the labels, and those
of old classes are what the previous network answers. Its nearest-mean rule (eq. 2) is the evaluation
that all methods share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import sqrt
from typing import Annotated, ClassVar

from pydantic import Field

from episodica.config.sections import TrainConfig
from episodica.lazy_torch import F, Optimizer, Tensor, nn, torch
from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.methods.batches import NO_EPISODES, arrived, batch_steps, draw_batch
from episodica.methods.heads import features, uniform
from episodica.methods.method import Method, Step, require_vectors
from episodica.rng import StepGenerators
from episodica.types import Batch, Pools, Shape


class ICaRL(Method, name="icarl"):
    """Binary cross-entropy with the previous network's sigmoids as targets of old classes."""

    replays: ClassVar[bool] = True
    ignores: ClassVar[tuple[str, ...]] = NO_EPISODES
    exemplars: ClassVar[str | None] = "herding"
    centroids: ClassVar[str] = "normalised"

    batch: Annotated[int, Field(ge=2, description="images of a step")] = 128
    lr: Annotated[float, Field(gt=0, description="learning rate, a fifth after 70 and again after 90 %")] = 2.0
    momentum: Annotated[float, Field(ge=0, lt=1, description="of SGD")] = 0.9
    weight_decay: Annotated[float, Field(ge=0, description="of SGD, on the whole network")] = 1e-5

    weight: nn.Parameter = field(init=False)  # [C, D]
    bias: nn.Parameter = field(init=False)  # [C]
    old_weight: Tensor = field(init=False)  # the previous network's [old C, D]
    old_bias: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.weight, self.bias = nn.Parameter(torch.empty(0, 0)), nn.Parameter(torch.empty(0))
        self.register_buffer("old_weight", torch.empty(0, 0))
        self.register_buffer("old_bias", torch.empty(0))

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        require_vectors(learner, "it learns an embedding for a nearest-centroid classifier")

    def steps(self, episodic: int, shape: Shape) -> int:
        return batch_steps(episodic, shape, self.batch)

    def optimizer(self, parameters: list[nn.Parameter], train: TrainConfig) -> Optimizer:
        return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)

    def rate(self, step: int, steps: int, train: TrainConfig) -> float:
        return self.lr / 5 ** ((step >= 0.7 * steps) + (step >= 0.9 * steps))

    def begin(self, access: Access, pools: Pools) -> None:
        """Keep the previous classifier and add outputs for the new classes."""
        one = features(access, pools.current.images()[:1])
        bound, g = 1 / sqrt(one.shape[1]), access.rng("classifier")
        new_weight = uniform((len(pools.current), one.shape[1]), bound, g, one)
        new_bias = uniform((len(pools.current),), bound, g, one)
        self.old_weight, self.old_bias = self.weight.detach().clone(), self.bias.detach().clone()
        old = self.old_weight.reshape(-1, one.shape[1])
        self.weight = nn.Parameter(torch.cat([old, new_weight]))
        self.bias = nn.Parameter(torch.cat([self.old_bias, new_bias]))

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Batch]:
        return {"mix": draw_batch(arrived(pools), self.batch, rng("mix"))}

    def loss(self, step: Step) -> dict[str, Tensor]:
        """Algorithm 3: binary cross-entropy of the outputs g_y(x) = sigmoid(w_y . phi(x) + b_y) (eq. 1) with targets:
        labels for new classes (classification), the previous network's g_y(x) for old ones (distillation)."""
        new = step.new_batches["mix"]
        logits = F.linear(new.features.float(), self.weight, self.bias)
        targets = F.one_hot(new.labels, len(self.weight)).float()
        old_classes = len(self.old_weight)
        if old_classes:
            old = step.old_batches["mix"].features.float()
            targets[:, :old_classes] = F.linear(old, self.old_weight, self.old_bias).sigmoid()
        entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(0) / len(self.weight)
        terms = {"classify": entropy[old_classes:].sum()}
        if old_classes:
            terms["distill"] = entropy[:old_classes].sum()
        return terms
