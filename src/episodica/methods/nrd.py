"""Neighbourhood Replay of Directions: a classifier and a neighbourhood loss on half new images, half exemplars.

Embeddings are directions: the last ReLU is left out and lengths are ignored, in training as in evaluation. A step
embeds images of the current task and as many exemplars, classes balanced in each half, tells all seen classes apart by
a cosine classifier (Hou et al. 2019, UCIR) and makes images of one class each other's neighbours (Goldberger et al.
2004, NCA). Turned images are classes of their own.

A third term is there to be compared with: it keeps the neighbourhoods that the previous model saw in the same batch
(Cha et al. 2021, Co2L).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import cos, pi
from typing import Annotated, ClassVar

from pydantic import Field

from episodica.config.sections import TrainConfig
from episodica.lazy_torch import F, Generator, Optimizer, Tensor, nn, torch
from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.methods.batches import NO_EPISODES, arrived, draw_groups
from episodica.methods.heads import features
from episodica.methods.method import Method, Step, require_vectors
from episodica.rng import StepGenerators
from episodica.types import Batch, Pools, Shape

TURNS = 4  # by 90 degrees, until an image is upright again


class NRD(Method, name="nrd"):
    """Cosine classifier and neighbourhood loss, on new images and exemplars in equal parts."""

    replays: ClassVar[bool] = True
    ignores: ClassVar[tuple[str, ...]] = NO_EPISODES
    exemplars: ClassVar[str | None] = "herding"
    centroids: ClassVar[str] = "normalised"

    neighbours: Annotated[float, Field(ge=0, description="weight of the neighbourhood loss")] = 0.5
    classify: Annotated[float, Field(ge=0, description="weight of a cosine classifier over all seen classes")] = 1.0
    keep: Annotated[float, Field(ge=0, description="weight of keeping the previous model's neighbourhoods")] = 0.0
    scale: Annotated[
        float, Field(gt=0, description="factor on cosines in the classifier and the neighbourhood loss")
    ] = 16.0
    kept_scale: Annotated[float, Field(gt=0, description="factor on cosines where neighbourhoods are kept")] = 10.0
    group: Annotated[
        int, Field(ge=2, description="images of a class in a half, at least, where there are more classes than fit")
    ] = 4
    turned: Annotated[
        float,
        Field(ge=0, le=1, description="share of groups turned by 90, 180 or 270 degrees, as classes of their own"),
    ] = 0.5
    lr: Annotated[float, Field(gt=0, description="learning rate, falling to 0 along a cosine in every session")] = 0.05
    momentum: Annotated[float, Field(ge=0, lt=1, description="Nesterov momentum of SGD")] = 0.9
    weight_decay: Annotated[float, Field(ge=0, description="of SGD, on the whole network")] = 5e-4

    weight: nn.Parameter = field(init=False)  # [C * turns, D], classes in the order of arrival

    def __post_init__(self) -> None:
        self.weight = nn.Parameter(torch.empty(0, 0))

    @property
    def turns_images(self) -> bool:
        return self.turned > 0

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        if not self.neighbours and not self.classify:
            raise ValueError(
                "neighbours and classify are both 0, so that nothing is learned: give one of them a weight"
            )
        if 2 * self.group > shape.images:
            raise ValueError(
                f"group = {self.group}: a half of a step has {shape.images} images, of two classes at least: "
                f"set it to {shape.images // 2} or less"
            )
        require_vectors(learner, "it compares the directions of embeddings")

    def adapt(self, learner: Learner) -> None:
        learner.backbone.drop_last_activation()

    def optimizer(self, parameters: list[nn.Parameter], train: TrainConfig) -> Optimizer:
        return torch.optim.SGD(
            parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay, nesterov=self.momentum > 0
        )

    def rate(self, step: int, steps: int, train: TrainConfig) -> float:
        return self.lr * (1 + cos(pi * step / steps)) / 2

    def begin(self, access: Access, pools: Pools) -> None:
        """The classifier's weights of classes that have none start at their class means: those of new classes, and of
        past ones, by their exemplars, where training goes on from an embedding alone."""
        if not self.classify:
            return
        without = list(arrived(pools).by_class().values())[len(self.weight) // self._turns :]
        means = [F.normalize(features(access, rows)).mean(0) for rows in without]
        known = self.weight.detach().reshape(-1, len(means[0]))
        directions = F.normalize(torch.stack(means)).repeat_interleave(self._turns, dim=0)
        self.weight = nn.Parameter(torch.cat([known, directions]))

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Batch]:
        """As many images of the current task, and as many exemplars, as an episode has."""
        current = self._some_turned(draw_groups(pools.current, shape.images, self.group, rng("mix")), rng("turns"))
        if pools.past is None:
            return {"mix": current}
        past = self._some_turned(draw_groups(pools.past, shape.images, self.group, rng("past")), rng("past turns"))
        labels = torch.cat([past.labels, self._turns * len(pools.past) + current.labels])
        turns = None if past.turns is None or current.turns is None else torch.cat([past.turns, current.turns])
        return {"mix": Batch(torch.cat([past.rows, current.rows]), labels, turns)}

    def _some_turned(self, drawn: Batch, g: Generator) -> Batch:
        """Groups of a class, turned or upright. A class has a place in the classifier for each turn."""
        if not self.turns_images:
            return drawn
        classes, places = drawn.labels.unique(return_inverse=True)
        groups = torch.arange(len(drawn.labels)) // len(classes) // self.group  # `draw_groups` goes round the classes
        shape = len(classes), int(groups[-1]) + 1
        turns = torch.randint(1, TURNS, shape, generator=g) * (torch.rand(shape, generator=g) < self.turned)
        turns = turns[places, groups]
        return Batch(drawn.rows, TURNS * drawn.labels + turns, turns)

    @property
    def _turns(self) -> int:
        """Places of a class in the classifier."""
        return TURNS if self.turns_images else 1

    def loss(self, step: Step) -> dict[str, Tensor]:
        new = step.new_batches["mix"]
        directions = F.normalize(new.features.float())
        terms = {}
        if self.neighbours:
            terms["neighbours"] = self.neighbours * neighbourhood_loss(directions, new.labels, self.scale)
        if self.classify:
            cosines = directions @ F.normalize(self.weight).T  # [M, C]
            terms["classify"] = self.classify * F.cross_entropy(self.scale * cosines, new.labels)
        if self.keep and step.teacher is not None:
            old = F.normalize(step.old_batches["mix"].features.float())
            terms["keep"] = self.keep * neighbourhood_change(old, directions, self.kept_scale)
        return terms


def neighbourhood_loss(directions: Tensor, labels: Tensor, scale: float) -> Tensor:
    """Minus the log of the share that images of the own class have among an image's neighbours, weighted by likeness;
    the mean over images that have one of their class in the batch."""
    shares = likeness(directions, scale)
    same = without_diagonal(labels[:, None] == labels)
    own = shares.masked_fill(~same, -torch.inf)[same.any(1)]
    return -own.logsumexp(1).mean() if len(own) else shares.sum() * 0


def neighbourhood_change(old: Tensor, new: Tensor, scale: float) -> Tensor:
    """KL divergence of an image's neighbours, weighted by likeness, from those that it had in the old model."""
    return F.kl_div(likeness(new, scale), likeness(old, scale), reduction="batchmean", log_target=True)


def likeness(directions: Tensor, scale: float) -> Tensor:
    """The log share that each other image of the batch has in an image's neighbourhood. [M, M - 1]"""
    return (scale * without_diagonal(directions @ directions.T)).log_softmax(1)


def without_diagonal(square: Tensor) -> Tensor:
    """Each line without the image itself. [M, M] -> [M, M - 1]"""
    size = len(square)
    return square.flatten()[1:].view(size - 1, size + 1)[:, :-1].reshape(size, size - 1)
