"""UCIR, "Learning a Unified Classifier Incrementally via Rebalancing" (Hou, Pan, Loy, Wang, Lin, CVPR 2019).

A cosine classifier with a learned scale, on features without their last ReLU. The direction of the previous network's
features is kept (less-forget), and exemplars are held apart from the new classes they resemble most (margin ranking).
Weights of new classes start at their class means; those of old classes are frozen.
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


class UCIR(Method, name="ucir"):
    """Cosine classifier, less-forget constraint and margin ranking."""

    replays: ClassVar[bool] = True
    ignores: ClassVar[tuple[str, ...]] = NO_EPISODES
    exemplars: ClassVar[str | None] = "herding"
    centroids: ClassVar[str] = "normalised"

    batch: Annotated[int, Field(ge=2, description="images of a step")] = 128
    lr: Annotated[float, Field(gt=0, description="learning rate, a tenth after 50 and again after 75 %")] = 0.1
    momentum: Annotated[float, Field(ge=0, lt=1, description="of SGD")] = 0.9
    weight_decay: Annotated[float, Field(ge=0, description="of SGD, on the whole network")] = 5e-4
    less_forget: Annotated[
        float, Field(ge=0, description="weight of the less-forget term, times sqrt(old classes / new classes)")
    ] = 5.0
    margin: Annotated[float, Field(ge=0, description="by which an exemplar's own class must lead the new ones")] = 0.5
    hardest: Annotated[int, Field(ge=1, description="new classes an exemplar is compared with")] = 2

    old_weight: Tensor = field(init=False)  # frozen [old C, D]
    weight: nn.Parameter = field(init=False)  # of the current classes [new C, D]
    scale: nn.Parameter = field(init=False)

    def __post_init__(self) -> None:
        self.register_buffer("old_weight", torch.empty(0, 0))
        self.weight, self.scale = nn.Parameter(torch.empty(0, 0)), nn.Parameter(torch.tensor(1.0))

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        require_vectors(learner, "it learns an embedding for a nearest-centroid classifier")

    def adapt(self, learner: Learner) -> None:
        learner.backbone.drop_last_activation()

    def steps(self, episodic: int, shape: Shape) -> int:
        return batch_steps(episodic, shape, self.batch)

    def optimizer(self, parameters: list[nn.Parameter], train: TrainConfig) -> Optimizer:
        return torch.optim.SGD(parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)

    def rate(self, step: int, steps: int, train: TrainConfig) -> float:
        return self.lr / 10 ** ((step >= 0.5 * steps) + (step >= 0.75 * steps))

    def begin(self, access: Access, pools: Pools) -> None:
        """Freeze the classes of the last session and imprint the new ones."""
        if pools.past is None:
            one = features(access, pools.current.images()[:1])
            shape = (len(pools.current), one.shape[1])
            self.weight = nn.Parameter(uniform(shape, 1 / sqrt(one.shape[1]), access.rng("classifier"), one))
            return
        learned = self.weight.detach()
        self.old_weight = torch.cat([self.old_weight.reshape(-1, learned.shape[1]), learned])
        length = self.old_weight.norm(dim=1).mean()
        means = [F.normalize(features(access, rows)).mean(0) for rows in pools.current.by_class().values()]
        self.weight = nn.Parameter(F.normalize(torch.stack(means)) * length)

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Batch]:
        return {"mix": draw_batch(arrived(pools), self.batch, rng("mix"))}

    def loss(self, step: Step) -> dict[str, Tensor]:
        """Eq. 9: L_ce + lambda L_dis^G + L_mr, each a mean over its images; f' and w' have length 1, f'* is the old f':

        - classify, L_ce (eq. 1 with the cosine normalisation of eq. 4): cross-entropy of softmax(scale <w'_y, f'(x)>)
        - less_forget, L_dis^G (eq. 6, less-forget constraint): 1 - <f'*(x), f'(x)>,
          with lambda = less_forget sqrt(old / new classes) (eq. 7)
        - margin, L_mr (eq. 8, inter-class separation): see `_margin_ranking`
        """
        new, old_classes = step.new_batches["mix"], len(self.old_weight)
        direction = F.normalize(new.features.float())
        weights = torch.cat([self.old_weight.reshape(-1, direction.shape[1]), self.weight])
        cosines = direction @ F.normalize(weights).T  # [M, C]
        terms = {"classify": F.cross_entropy(self.scale * cosines, new.labels)}
        if not old_classes:
            return terms
        old_direction = F.normalize(step.old_batches["mix"].features.float())
        weight = self.less_forget * sqrt(old_classes / len(self.weight))
        terms["less_forget"] = weight * (1 - (direction * old_direction).sum(1)).mean()
        terms["margin"] = self._margin_ranking(cosines, new.labels, old_classes)
        return terms

    def _margin_ranking(self, cosines: Tensor, labels: Tensor, old_classes: int) -> Tensor:
        """Eq. 8: max(margin - <w'_y, f'(x)> + <w'_k, f'(x)>, 0) of exemplars x of class y and the new classes k nearest
        to each. The paper sums over k; here it is the mean over both. 0 in a batch without exemplars."""
        of_exemplars = labels < old_classes
        own = cosines.gather(1, labels[:, None])[of_exemplars]
        hardest = cosines[of_exemplars, old_classes:].topk(min(self.hardest, len(self.weight))).values
        return (self.margin - own + hardest).clamp_min(0).sum() / max(hardest.numel(), 1)
