"""The session that is timed: ERD in its second session, on images of noise.

Noise is as good as photographs here: no part of the arithmetic depends on what an image shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from episodica.config import RunConfig, resolve
from episodica.config.sections import AugmentConfig
from episodica.data.store import ImageStore
from episodica.engine.access import SessionAccess
from episodica.engine.experiment import new_learner
from episodica.engine.forward import Forward, frozen
from episodica.engine.fused.accelerate import accelerate
from episodica.engine.fused.build import CannotBuild, library
from episodica.engine.fused.random_views import VIEWS
from episodica.engine.trainer import take_step
from episodica.learners.learner import Learner
from episodica.methods.erd import ERD
from episodica.rng import StepGenerators, generator
from episodica.types import Episodes, Pool, Pools, Shape

CLASSES, PER_CLASS = 20, 100
CPU = torch.device("cpu")
STILL = AugmentConfig(crop="none", flip=False, brightness=0, contrast=0, colour=0)
DEFAULT = AugmentConfig()
NETWORKS: Mapping[str, dict[str, Any]] = {
    "4-Conv": {},
    "ResNet-12": {"backbone": {"name": "resnet12"}},
    "Relation Networks": {"learner": {"name": "relationnet"}, "backbone": {"pools": 2}},
}


def available_kernels() -> tuple[str, ...]:
    """What can compute here; the fastest is the last."""
    try:
        library()
    except CannotBuild:
        return ("torch",)
    return ("torch", "fused")


def noise(images: int, size: int) -> ImageStore:
    shape = (images, size, size, 3)
    return ImageStore(torch.randint(256, shape, dtype=torch.uint8, generator=generator("bench", *shape)).numpy())


@dataclass(frozen=True)
class Workload:
    """What every contender is given: images, pools, draws and initial weights."""

    size: int = 32
    shots: int = 1
    how: AugmentConfig = STILL
    network: str = "4-Conv"

    @cached_property
    def config(self) -> RunConfig:
        return resolve({"augment": {"size": self.size}, "shape": {"shots": self.shots}, **NETWORKS[self.network]})

    @property
    def shape(self) -> Shape:
        return self.config.training_shape

    @cached_property
    def method(self) -> ERD:
        return ERD()

    @cached_property
    def store(self) -> ImageStore:
        return noise(CLASSES * PER_CLASS, self.size)

    @cached_property
    def pools(self) -> Pools:
        rows = torch.arange(CLASSES * PER_CLASS).view(CLASSES, PER_CLASS)
        half = CLASSES // 2
        current, past = ({c: rows[c] for c in classes} for classes in (range(half), range(half, CLASSES)))
        return Pools(Pool.of(current), Pool.of(past))

    @property
    def images(self) -> int:
        """Of a step, in both sub-episodes."""
        return 2 * self.shape.images

    def rng(self, step: int) -> StepGenerators:
        return StepGenerators(0, 1, step, 10**6)

    def draws(self, step: int) -> Mapping[str, Episodes]:
        return self.method.draw(self.pools, self.shape, self.rng(step))

    def learner(self) -> Learner:
        return new_learner(self.config, CPU).train()


class EngineLoop:
    """A session as the trainer runs it, step by step."""

    def __init__(self, workload: Workload, kernels: str) -> None:
        self.workload, self.done = workload, 0
        learner = workload.learner()
        computing = accelerate(learner, kernels, lambda text: None)
        assert computing == kernels, computing
        teacher = frozen(learner)
        rng = partial(generator, 0)
        view = VIEWS[computing]
        self.access = SessionAccess(workload.store, workload.how, CPU, workload.pools, rng, learner, teacher, view=view)
        self.forward = Forward(self.access, learner, teacher, split_bn=False, cache=not workload.how.random)
        self.optimizer = workload.method.optimizer(list(learner.parameters()), workload.config.train)

    def step(self) -> dict[str, Tensor]:
        rng = self.workload.rng(self.done)
        step = self.forward(self.workload.draws(self.done), rng)
        self.done += 1
        return take_step(self.workload.method, step, self.optimizer)
