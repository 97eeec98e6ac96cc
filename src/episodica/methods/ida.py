"""Indirect Discriminant Alignment (Liu, Majumder, Achille, Ravichandran, Bhotika, Soatto 2020).

Every class that was learned leaves an anchor: its mean under the model that learned it, fixed for good. On the images
of the current episode, the new model must place them among the old anchors as the previous model did.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from pydantic import Field

from episodica.lazy_torch import Tensor, torch
from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.methods.anchors import alignment, class_means, sampled
from episodica.methods.method import Method, Step, current_episodes, meta_term, require_vectors
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pools, Shape


class IDA(Method, name="ida"):
    """Distil the previous model's distances to the means of the classes learned so far."""

    weight: Annotated[float, Field(ge=0, description="weight of the alignment")] = 1.0
    sample: Annotated[int | None, Field(ge=2, description="old anchors drawn for a step; by default all")] = None

    anchors: Tensor = field(init=False)  # [old classes, D]

    def __post_init__(self) -> None:
        self.register_buffer("anchors", torch.empty(0))

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        require_vectors(learner, "its anchors are points of the embedding")

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes]:
        return current_episodes(pools, shape, rng)

    def loss(self, step: Step) -> dict[str, Tensor]:
        terms = meta_term(step)
        if step.teacher is not None and self.weight:
            anchors = sampled(self.anchors, self.sample, step.rng)
            terms["align"] = self.weight * alignment(
                step.learner, step.teacher, anchors, step.new["mix"], step.old["mix"]
            )
        return terms

    def end(self, access: Access, pools: Pools) -> None:
        new = class_means(access, access.learner, pools.current)
        self.anchors = torch.cat([self.anchors, new]) if len(self.anchors) else new
