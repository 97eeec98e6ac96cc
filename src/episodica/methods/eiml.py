"""EIML: Indirect Discriminant Alignment with exemplars (Liu et al. 2020; as compared with in the ERD paper).

As IDA, but the anchors are not fixed: at the start of each session the previous model computes them anew from the
stored exemplars. The two switches that replay exemplars lead, one after the other, from EIML towards ERD (the component
ablation in the supplement of the released code); neither draws ERD's exemplar sub-episode.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar

from pydantic import Field

from episodica.lazy_torch import Tensor, torch
from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.methods.anchors import alignment, class_means, sampled
from episodica.methods.method import Method, Step, current_episodes, few_shot_loss, require_vectors
from episodica.methods.replay import check_share, past_beside_current
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pools, Shape


class EIML(Method, name="eiml"):
    """Distil the previous model's distances to class means that it computes anew from the exemplars."""

    replays: ClassVar[bool] = True

    weight: Annotated[float, Field(ge=0, description="weight of the alignment")] = 1.0
    sample: Annotated[int | None, Field(ge=2, description="old anchors drawn for a step; by default all")] = None
    exemplars_in_distillation: Annotated[
        bool, Field(description="align on exemplars of past classes too; else on images of current classes alone")
    ] = False
    exemplars_in_meta_loss: Annotated[
        bool,
        Field(description="put past classes in the place of a share p of the classes of the episode that is learned"),
    ] = False
    p: Annotated[
        float,
        Field(ge=0, lt=1, description="past classes of a step, as a share of the way, where exemplars are replayed"),
    ] = 0.2

    anchors: Tensor = field(init=False)  # [old classes, D]

    def __post_init__(self) -> None:
        self.register_buffer("anchors", torch.empty(0))

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        require_vectors(learner, "its anchors are points of the embedding")
        if self._draws_exemplars:
            check_share(self.p, shape.way)

    @property
    def _draws_exemplars(self) -> bool:
        used = self.exemplars_in_meta_loss or (self.exemplars_in_distillation and self.weight > 0)
        return used and self.p > 0

    def least_exemplars(self, shape: Shape) -> int:
        return shape.shots + 1 if self._draws_exemplars else 1

    def begin(self, access: Access, pools: Pools) -> None:
        if access.teacher is not None and pools.past is not None:
            self.anchors = class_means(access, access.teacher, pools.past)

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes]:
        if pools.past is None or not self._draws_exemplars:
            return current_episodes(pools, shape, rng)
        n_past = round(shape.way * self.p)
        n_current = shape.way - n_past if self.exemplars_in_meta_loss else shape.way
        return {"mix": past_beside_current(pools, pools.past, shape, n_past, n_current, rng)}

    def loss(self, step: Step) -> dict[str, Tensor]:
        learned = step.new["mix"] if self.exemplars_in_meta_loss else step.new["mix"].current
        terms = {"meta": few_shot_loss(step.learner, learned)}
        if step.teacher is not None and self.weight:
            anchors = sampled(self.anchors, self.sample, step.rng)
            new, old = step.new["mix"], step.old["mix"]
            if not self.exemplars_in_distillation:
                new, old = new.current, old.current
            terms["align"] = self.weight * alignment(step.learner, step.teacher, anchors, new, old)
        return terms
