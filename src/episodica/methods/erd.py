"""Episodic Replay Distillation (Wang, Liu, Bagdanov, Herranz, Jui, van de Weijer, CVPR-W 2022), equations 5-8.

Each step learns from an episode that mixes classes of the current task with exemplars of past ones (the cross-task
sub-episode), and keeps the previous model's answers on it and on an episode of exemplars only (the exemplar
sub-episode). Where paper and released code differ, both are here and the paper's equation is the default.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from episodica.lazy_torch import Tensor
from episodica.learners.learner import Learner
from episodica.methods.method import Method, Step, current_episodes, meta_term, require_vectors
from episodica.methods.replay import check_share, cross_task, exemplars_only
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pools, Shape


class ERD(Method, name="erd"):
    """Replay exemplars inside episodes and distil the previous model's predictions on them."""

    replays: ClassVar[bool] = True

    p: Annotated[
        Annotated[float, Field(ge=0, le=1)] | Literal["rand"],
        Field(description="share of past classes in a cross-task sub-episode; rand: uniform over all seen classes"),
    ] = 0.2
    strategy: Annotated[
        Literal["fixed", "binomial"],
        Field(description="way x p past classes in every episode, or a binomial number with that mean"),
    ] = "fixed"
    lambda_m: Annotated[float, Field(ge=0, description="weight of distillation on the cross-task sub-episode")] = 0.5
    lambda_e: Annotated[float, Field(ge=0, description="weight of distillation on the exemplar sub-episode")] = 0.5
    cross: Annotated[
        Literal["paper", "released"],
        Field(
            description="cross-task distillation: each model against its own prototypes (eq. 7), or both models and "
            "all images against the old model's prototypes of the exemplar sub-episode (released code)"
        ),
    ] = "paper"
    kl_clamp: Annotated[
        float,
        Field(ge=0, lt=1, description="lower bound of both probabilities in the KL terms (released code: 1e-4)"),
    ] = 0.0

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        if isinstance(self.p, float) and self.strategy == "fixed":
            check_share(self.p, shape.way, ", or set strategy: binomial")
        if self.cross == "released":
            require_vectors(learner, "cross: released scores embeddings against prototypes")
        if self.kl_clamp and not learner.logits:
            raise ValueError(
                f"kl_clamp bounds probabilities, and {learner.name} compares relation scores: leave it at 0"
            )

    @property
    def _draws_exemplar_episodes(self) -> bool:
        return bool(self.lambda_e or (self.lambda_m and self.cross == "released"))

    def least_exemplars(self, shape: Shape) -> int:
        return shape.shots + 1 if self.p or self._draws_exemplar_episodes else 1

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Episodes]:
        if pools.past is None:
            return current_episodes(pools, shape, rng)
        mix, used = cross_task(pools, pools.past, shape, self.p, self.strategy, rng)
        if not self._draws_exemplar_episodes:
            return {"mix": mix}
        return {"mix": mix, "exemplar": exemplars_only(pools.past, shape, rng, avoid=used)}

    def loss(self, step: Step) -> dict[str, Tensor]:
        """Eq. 8: L = L_meta (eq. 5) + lambda_m L_dist^m (eq. 7) + lambda_e L_dist^e (eq. 6)."""
        learner, teacher, terms = step.learner, step.teacher, meta_term(step)
        if teacher is None:
            return terms
        if self.lambda_m:
            terms["distill_m"] = self.lambda_m * self._distill_cross(step, teacher)
        if self.lambda_e:  # eq. 6, or the second line of eq. 10: each model with its own classifier
            new, old = learner.answers(step.new["exemplar"]), teacher.answers(step.old["exemplar"])
            terms["distill_e"] = self.lambda_e * learner.distill(new, old, self.kl_clamp)
        return terms

    def _distill_cross(self, step: Step, teacher: Learner) -> Tensor:
        """Eq. 7 for ProtoNets, the first line of eq. 10 for Relation Networks: the old classifier module scores the new
        embeddings. ProtoNets have no classifier module, so for them it is eq. 7 as printed."""
        new, old = step.new["mix"], step.old["mix"]
        if self.cross == "paper":
            pair = teacher.answers(new), teacher.answers(old)
        else:
            anchors = teacher.prototypes(step.old["exemplar"].support)
            pair = teacher.scores(anchors, new.images), teacher.scores(anchors, old.images)
        return step.learner.distill(*pair, self.kl_clamp)
