"""Indirect Discriminant Alignment (Liu, Majumder, Achille, Ravichandran, Bhotika, Soatto 2020).

Every class that was learned leaves an anchor: its mean under the model that learned it, fixed for good. On the images
of the current episode, the new model must place them among the old anchors as the previous model did.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from episodica.engine.access import Access
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.methods.method import Method, Step, current_episodes, meta_term
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pool, Pools, Shape


class IDA(Method, name="ida"):
    """Distil the previous model's distances to the means of the classes learned so far."""

    weight: Annotated[float, Field(ge=0, description="weight of the alignment")] = 1.0
    sample: Annotated[int | None, Field(ge=2, description="old anchors drawn for a step; by default all")] = None

    anchors: Tensor = field(init=False)  # [old classes, D]

    def __post_init__(self) -> None:
        self.register_buffer("anchors", torch.empty(0))

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        require_anchors(learner)

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes]:
        return current_episodes(pools, shape, rng)

    def loss(self, step: Step) -> dict[str, Tensor]:
        terms = meta_term(step)
        if step.teacher is not None and self.weight:
            anchors = sampled(self.anchors, self.sample, step.rng)
            terms["align"] = self.weight * alignment(step, step.teacher, anchors, ["mix"])
        return terms

    def end(self, access: Access, pools: Pools) -> None:
        new = class_means(access, access.learner, pools.current)
        self.anchors = torch.cat([self.anchors, new]) if len(self.anchors) else new


def require_anchors(learner: type[Learner]) -> None:
    if not issubclass(learner, ProtoNet):
        raise ValueError("alignment needs class anchors, points in the embedding, which only ProtoNets have")


def class_means(access: Access, learner: Learner, pool: Pool) -> Tensor:
    """[C, D]"""
    return torch.stack([access.embed(learner, rows).float().mean(0) for rows in pool.by_class().values()])


def sampled(anchors: Tensor, count: int | None, rng: StepGenerators) -> Tensor:
    if count is None:
        return anchors
    return anchors[torch.randperm(len(anchors), generator=rng("anchors"))[:count].to(anchors.device)]


def alignment(step: Step, teacher: Learner, anchors: Tensor, names: Iterable[str]) -> Tensor:
    """KL between the old and the new model's distribution over the anchors, mean over the images of named episodes."""
    new, old = (torch.cat([part[name].images for name in names], dim=1) for part in (step.new, step.old))
    return step.learner.distill(step.learner.scores(anchors[None], new), teacher.scores(anchors[None], old))
