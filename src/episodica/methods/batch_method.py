"""What the baselines share that do not learn from episodes: mixed batches, SGD and a classifier that grows."""

from collections.abc import Mapping
from math import ceil
from typing import Annotated, ClassVar

from pydantic import Field
from torch import nn
from torch.optim import SGD, Optimizer

from episodica.config.sections import TrainConfig
from episodica.learners.learner import Learner
from episodica.methods.batches import arrived, draw_batch
from episodica.methods.method import Method, require_vectors
from episodica.rng import StepGenerators
from episodica.types import Batch, Pools, Shape


class BatchMethod(Method):
    """Learns to classify all seen classes from mixed batches; what stays for evaluation is the embedding."""

    replays: ClassVar[bool] = True
    ignores: ClassVar[tuple[str, ...]] = ("train.lr", "train.decay", "train.parts", "train.bn")
    exemplars: ClassVar[str | None] = "herding"
    centroids: ClassVar[str] = "normalised"

    batch: Annotated[int, Field(ge=2, description="images of a step")] = 128
    lr: Annotated[float, Field(gt=0, description="learning rate at the beginning of a session")] = 0.1
    momentum: Annotated[float, Field(ge=0, lt=1, description="of SGD")] = 0.9
    weight_decay: Annotated[float, Field(ge=0, description="of SGD, on the whole network")] = 5e-4

    def check(self, shape: Shape, learner: type[Learner]) -> None:
        require_vectors(learner, "it learns an embedding for a nearest-centroid classifier")

    def steps(self, episodic: int, shape: Shape) -> int:
        """As many as show the images that an episodic method sees in its steps."""
        return ceil(episodic * shape.episodes * shape.way * (shape.shots + shape.queries) / self.batch)

    def optimizer(self, parameters: list[nn.Parameter], train: TrainConfig) -> Optimizer:
        return SGD(parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)

    def draw(self, pools: Pools, shape: Shape, rng: StepGenerators) -> Mapping[str, Batch]:
        return {"mix": draw_batch(arrived(pools), self.batch, rng("mix"))}
