"""Anchors: one point of the embedding for each old class, against which two models are compared."""

from episodica.lazy_torch import Tensor, torch
from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.rng import StepGenerators
from episodica.types import Embedded, Pool


def class_means(access: Access, learner: Learner, pool: Pool) -> Tensor:
    """[C, D]"""
    return torch.stack([access.embed(learner, rows).float().mean(0) for rows in pool.by_class().values()])


def sampled(anchors: Tensor, count: int | None, rng: StepGenerators) -> Tensor:
    if count is None:
        return anchors
    return anchors[torch.randperm(len(anchors), generator=rng("anchors"))[:count].to(anchors.device)]


def alignment(learner: Learner, teacher: Learner, anchors: Tensor, new: Embedded, old: Embedded) -> Tensor:
    """Eq. 6 of Liu et al. 2020: KL(q || p), mean over all images of the episodes; q and p are the softmax over the
    anchors of minus the distances from the old and from the new model's embedding."""
    return learner.distill(learner.scores(anchors[None], new.images), teacher.scores(anchors[None], old.images))
