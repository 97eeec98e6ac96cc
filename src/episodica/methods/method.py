"""The contract of a method: what it draws, and which loss terms it computes from the embeddings. Nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from episodica.config.sections import TrainConfig
from episodica.data.sampling import draw_episodes
from episodica.lazy_torch import Module, Optimizer, Tensor, nn, torch
from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.registry import Component
from episodica.rng import StepGenerators
from episodica.types import Batch, Embedded, EmbeddedBatch, Episodes, Pools, Shape


@dataclass(frozen=True, eq=False)
class Step:
    """What the engine hands to `loss`: all that was drawn, by name, embedded by the new and by the old model."""

    learner: Learner
    new: Mapping[str, Embedded]
    teacher: Learner | None  # the frozen model of the previous session; none in the first
    old: Mapping[str, Embedded]  # computed when asked for
    rng: StepGenerators
    new_batches: Mapping[str, EmbeddedBatch] = field(default_factory=dict)
    old_batches: Mapping[str, EmbeddedBatch] = field(default_factory=dict)  # computed when asked for


class Method(Module, Component, kind="method"):
    """Fields are hyper-parameters; buffers and sub-modules are state, which the engine saves and restores."""

    replays: ClassVar[bool] = False  # whether it draws exemplars of past classes, so that a memory must be kept
    merges_tasks: ClassVar[bool] = False  # whether it trains on all tasks at once: a bound, not an incremental method
    ignores: ClassVar[tuple[str, ...]] = ()  # fields of every run that do nothing for it
    exemplars: ClassVar[str | None] = None  # the rule by which its memory chooses; by default the learner's
    released_bn: ClassVar[Literal["split", "joint"]] = "joint"  # `train.bn` of the authors' script after session 1
    centroids: ClassVar[str] = "raw"  # how its embedding is evaluated, unless told otherwise

    @property
    def turns_images(self) -> bool:
        """Whether it draws images to be turned, so that what frozen blocks make of upright ones is of no use."""
        return False

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        """Raise a ValueError where the hyper-parameters do not fit the episodes or the learner."""

    def adapt(self, learner: Learner) -> None:
        """Change a fresh learner where the method needs another architecture."""

    def least_exemplars(self, shape: Shape) -> int:
        """How many exemplars of a class it cannot do without."""
        return 1

    def steps(self, episodic: int, shape: Shape) -> int:
        """Steps of a session in which an episodic method makes `episodic` of them."""
        return episodic

    def optimizer(self, parameters: list[nn.Parameter], train: TrainConfig) -> Optimizer:
        """A new one for every session."""
        return torch.optim.Adam(parameters, lr=train.lr, fused=True)

    def rate(self, step: int, steps: int, train: TrainConfig) -> float:
        """The learning rate of a step: it falls by a factor after each of the equal parts of a session."""
        return train.lr * train.decay ** (train.parts * step // steps)

    def begin(self, access: Access, pools: Pools) -> None:
        """Before the first step of a session, but not where one is continued: what it finds belongs into buffers."""

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes | Batch]:
        raise NotImplementedError

    def loss(self, step: Step) -> dict[str, Tensor]:
        """Named terms, already weighted; the engine sums, logs and plots them."""
        raise NotImplementedError

    def end(self, access: Access, pools: Pools) -> None:
        """After the last step of a session, when the memory has chosen."""


def require_vectors(learner: type[Learner], why: str) -> None:
    if not learner.vectors:
        raise ValueError(f"{why}, and {learner.name} compares maps instead of points: use learner.name: protonet")


def current_episodes(pools: Pools, shape: Shape, rng: StepGenerators) -> dict[str, Episodes]:
    """Episodes of the current task alone: all that there is in the first session."""
    return {"mix": draw_episodes(pools.current, shape, rng("mix"))}


def meta_term(step: Step) -> dict[str, Tensor]:
    """The few-shot loss of the learner on the `mix` episodes (eq. 3 and 5)."""
    return {"meta": few_shot_loss(step.learner, step.new["mix"])}


def few_shot_loss(learner: Learner, episodes: Embedded) -> Tensor:
    return learner.meta_loss(learner.answers(episodes), episodes.labels)
