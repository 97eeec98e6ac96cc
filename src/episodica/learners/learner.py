"""The contract of a learner: how a support set becomes a classifier, and how two classifiers are compared."""

from typing import ClassVar

from episodica.lazy_torch import Module, Size, Tensor
from episodica.models.backbone import Backbone
from episodica.registry import Component
from episodica.types import Embedded


class Learner(Module, Component, kind="learner"):
    """`prototypes` and `scores` stay apart, so that queries can be scored against any prototypes."""

    backbone: Backbone
    exemplars: ClassVar[str]  # the rule by which a memory chooses for this learner, unless told otherwise
    logits: ClassVar[bool] = True  # whether a softmax of the scores gives probabilities, which `distill` compares
    vectors: ClassVar[bool] = True  # whether embeddings have one dimension, so that a length of 1 means something
    sums_up: ClassVar[bool] = False  # whether it is told the embeddings of each session's images, by `sum_up`

    def check(self, size: int) -> None:
        """Raise a ValueError where the backbone's maps of images of this size, in pixels of a side, do not do."""

    def build_for(self, size: int) -> None:
        """Make the parts whose shape depends on the size of the images; most learners have none."""

    def embed(self, images: Tensor) -> Tensor:  # [M, 3, S, S] -> [M, *E]
        raise NotImplementedError

    def prototypes(self, support: Tensor) -> Tensor:  # [B, N, K, *E] -> one classifier an episode
        raise NotImplementedError

    def scores(self, prototypes: Tensor, queries: Tensor) -> Tensor:  # queries [B, M, *E] -> [B, M, N]
        raise NotImplementedError

    def meta_loss(self, answers: Tensor, labels: Tensor) -> Tensor:
        raise NotImplementedError

    def distill(self, student: Tensor, teacher: Tensor, clamp: float = 0.0) -> Tensor:
        """How far the student's answers are from the teacher's."""
        raise NotImplementedError

    def sum_up(self, embeddings: Tensor, classes: Tensor) -> None:
        """Add what is to be known of the images of a session, when its training is over, to sums kept in buffers.
        Evaluation-mode embeddings [M, *E] and the class of each [M]."""
        raise NotImplementedError

    def pair_values(self, embedding: Size) -> int:
        """How many numbers scoring holds at once for a query and a support image with embeddings of this shape."""
        return 1

    def pairwise(self, shots: int) -> bool:
        """Whether a class's score is the mean of the scores that its support images have as classes of their own, and
        scoring so costs enough that pairs should not be scored twice."""
        return False

    def for_evaluation(self) -> "Learner":
        """The same answers where every image is scored many times: `embed` may do, once, what scoring would repeat."""
        return self

    def classify(self, episodes: Embedded) -> Tensor:
        """Scores of an episode's queries against its own support set. [B, N * Q, N]"""
        return self.scores(self.prototypes(episodes.support), episodes.query)

    def answers(self, episodes: Embedded) -> Tensor:
        """What the losses compare: these scores, or those of each support image of which they are the mean."""
        return self.classify(episodes)
