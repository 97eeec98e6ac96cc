"""EIML: Indirect Discriminant Alignment with exemplars (Liu et al. 2020; as compared with in the ERD paper).

As IDA, but the anchors are not fixed: at the start of each session the previous model computes them anew from the
stored exemplars. The two switches that replay exemplars lead, one after the other, from EIML towards ERD.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.methods.anchors import alignment, class_means, sampled
from episodica.methods.method import Method, Step, current_episodes, meta_term, require_vectors
from episodica.methods.replay import check_share, cross_task, exemplars_only
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pools, Shape


class EIML(Method, name="eiml"):
    """Distil the previous model's distances to class means that it computes anew from the exemplars."""

    replays: ClassVar[bool] = True

    weight: Annotated[float, Field(ge=0, description="weight of the alignment")] = 1.0
    sample: Annotated[int | None, Field(ge=2, description="old anchors drawn for a step; by default all")] = None
    exemplars_in_distillation: Annotated[
        bool, Field(description="align on an episode of exemplars as well as on the episode that is learned")
    ] = False
    exemplars_in_meta_loss: Annotated[
        bool, Field(description="mix a share p of past classes into the episode that is learned")
    ] = False
    p: Annotated[float, Field(ge=0, le=1, description="that share, where exemplars are in the meta loss")] = 0.2

    anchors: Tensor = field(init=False)  # [old classes, D]

    def __post_init__(self) -> None:
        self.register_buffer("anchors", torch.empty(0))

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        require_vectors(learner, "its anchors are points of the embedding")
        if self.exemplars_in_meta_loss:
            check_share(self.p, shape.way)

    @property
    def _share(self) -> float:
        return self.p if self.exemplars_in_meta_loss else 0

    @property
    def _draws_exemplar_episodes(self) -> bool:
        return self.exemplars_in_distillation and self.weight > 0

    def least_exemplars(self, shape: Shape) -> int:
        return shape.shots + 1 if self._share or self._draws_exemplar_episodes else 1

    def begin(self, access: Access, pools: Pools) -> None:
        if access.teacher is not None and pools.past is not None:
            self.anchors = class_means(access, access.teacher, pools.past)

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes]:
        if pools.past is None:
            return current_episodes(pools, shape, rng)
        mix, used = cross_task(pools, pools.past, shape, self._share, "fixed", rng)
        if not self._draws_exemplar_episodes:
            return {"mix": mix}
        return {"mix": mix, "exemplar": exemplars_only(pools.past, shape, rng, avoid=used)}

    def loss(self, step: Step) -> dict[str, Tensor]:
        terms = meta_term(step)
        if step.teacher is not None and self.weight:
            anchors = sampled(self.anchors, self.sample, step.rng)
            terms["align"] = self.weight * alignment(step, step.teacher, anchors, step.new)
        return terms
