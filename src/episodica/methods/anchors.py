"""Anchors: one point of the embedding for each old class, against which two models are compared."""

from collections.abc import Collection

import torch
from torch import Tensor

from episodica.learners.learner import Learner
from episodica.methods.access import Access
from episodica.methods.method import Step
from episodica.rng import StepGenerators
from episodica.types import Pool


def class_means(access: Access, learner: Learner, pool: Pool) -> Tensor:
    """[C, D]"""
    return torch.stack([access.embed(learner, rows).float().mean(0) for rows in pool.by_class().values()])


def sampled(anchors: Tensor, count: int | None, rng: StepGenerators) -> Tensor:
    if count is None:
        return anchors
    return anchors[torch.randperm(len(anchors), generator=rng("anchors"))[:count].to(anchors.device)]


def alignment(step: Step, teacher: Learner, anchors: Tensor, names: Collection[str]) -> Tensor:
    """KL between the old and the new model's distribution over the anchors, mean over the images of named episodes."""
    new, old = (torch.cat([part[name].images for name in names], dim=1) for part in (step.new, step.old))
    return step.learner.distill(step.learner.scores(anchors[None], new), teacher.scores(anchors[None], old))
