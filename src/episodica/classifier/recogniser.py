"""What answers questions about images, whatever kind of model is behind it: classes, probabilities, and the unknown."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple, Self

import numpy as np


class Answer(NamedTuple):
    """The likeliest class, also where it is so far that the image counts as unknown; none where no class is known."""

    best: str | None
    probability: float
    unknown: bool
    scores: dict[str, float]  # the probability of each class
    strangeness: float | None = None  # of the image for that class
    limit: float | None = None  # beyond which it is unknown; none where nothing is


class Strange(NamedTuple):
    """How little each image is like its likeliest class, and the limit beyond which it is unknown. [M] each"""

    values: np.ndarray
    limits: np.ndarray


class Places(NamedTuple):
    """Images as places: the squared distance of two says how unlike they are. [M, D]"""

    values: np.ndarray
    reach: float | None  # that images of one class are apart at most; none where nothing is known of it


class Recogniser(ABC):
    """Answers depend on nothing but what it was made of. Changes give a new one."""

    image_size: int

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Of the classes that it knows."""

    @abstractmethod
    def embed(self, images: np.ndarray) -> np.ndarray:
        """uint8 [M, S, S, 3] -> [M, D]"""

    def comparable(self, vectors: np.ndarray) -> np.ndarray:
        """Embeddings whose distance says how unlike two images are. [M, D]"""
        return vectors

    @abstractmethod
    def only(self, support: Mapping[str, np.ndarray]) -> Self:
        """With these classes instead of its own: of each the embeddings of k images, [k, D]."""

    @abstractmethod
    def rejecting(self, rate: float) -> Self:
        """With limits that this share of the images of known classes exceeds."""

    @abstractmethod
    def probabilities(self, vectors: np.ndarray) -> np.ndarray:
        """Of each class, in the order of `names`. [M, D] -> [M, C]"""

    @abstractmethod
    def strange(self, vectors: np.ndarray) -> Strange:
        """Of images [M, D], where some class is known."""

    @abstractmethod
    def places(self, vectors: np.ndarray) -> Places:
        """Of images [M, D] of classes that it does not know, to compare them with each other: see `groups`."""

    def unknown(self, vectors: np.ndarray) -> np.ndarray:
        """Which images are stranger than their likeliest class allows. [M]"""
        found = self.strange(vectors)
        return found.values > found.limits

    def answers(self, vectors: np.ndarray) -> list[Answer]:
        if not self.names:
            return [Answer(None, 0.0, True, {}) for _ in vectors]
        found = self.strange(vectors)
        lines = zip(self.probabilities(vectors).tolist(), found.values.tolist(), found.limits.tolist(), strict=True)
        return [self._answer(*line) for line in lines]

    def _answer(self, probabilities: list[float], strangeness: float, limit: float) -> Answer:
        best = max(range(len(self.names)), key=probabilities.__getitem__)
        return Answer(
            self.names[best],
            probabilities[best],
            strangeness > limit,
            dict(zip(self.names, probabilities, strict=True)),
            strangeness,
            limit if isfinite(limit) else None,
        )
