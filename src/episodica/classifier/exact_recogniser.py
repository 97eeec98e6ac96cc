"""A frozen encoder and a classifier whose arithmetic is exact: nothing was trained, and sums are all that is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from episodica.classifier.recogniser import Places, Recogniser, Strange
from episodica.engine.image_encoder import ImageEncoder
from episodica.errors import InputError
from episodica.learners.exact import FALSE_REJECTS, ExactClassifier
from episodica.learners.statistics import UNIT, Statistics, at_length_1, points

ENOUGH = 4  # classes that tell how unlike images of different ones are


def points_as_they_are(points: np.ndarray) -> np.ndarray:
    return points


@dataclass(frozen=True, eq=False)
class ExactRecogniser(Recogniser):
    encoder: ImageEncoder
    statistics: Statistics  # of the model's own classes, as an adapter turns them, row by row
    support: Mapping[str, np.ndarray] | None = None  # points of other classes, to answer with instead
    rate: float = FALSE_REJECTS
    turn: Callable[[np.ndarray], np.ndarray] = points_as_they_are  # what an adapter makes of points
    stranger: float = 0.0  # than those images others of their classes are, because the adapter was trained on them

    @property
    def image_size(self) -> int:  # type: ignore[override]
        return self.encoder.size

    @property
    def names(self) -> tuple[str, ...]:
        return self.classifier.names

    def embed(self, images: np.ndarray) -> np.ndarray:
        return self.encoder.embed_pixels(images)

    @property
    def adapted(self) -> bool:
        return self.turn is not points_as_they_are

    def _points(self, vectors: np.ndarray) -> np.ndarray:
        return self.turn(points(vectors))

    def comparable(self, vectors: np.ndarray) -> np.ndarray:
        return self.comparable_points(points(vectors))

    def comparable_points(self, kept: np.ndarray) -> np.ndarray:
        """The same of points that a state keeps. int16 [M, D] -> float32 [M, D]"""
        return self.turn(kept).astype(np.float32) * np.float32(UNIT)

    def scores(self, vectors: np.ndarray) -> np.ndarray:
        """How well each class fits each image. [M, C]"""
        return self.classifier.scores(self._points(vectors))

    @property
    def limit(self) -> float:
        """The strangeness above which an image is unknown."""
        return self.classifier.limit(self.rate) + self.stranger

    @property
    def held_out_strangeness(self) -> np.ndarray | None:
        """Of images of known classes that nothing was learned from; none where there is nothing to tell. [A]"""
        found = self.classifier.calibration.left_out
        return None if found is None else found.strangeness + self.stranger

    def only(self, support: Mapping[str, np.ndarray]) -> "ExactRecogniser":
        empty = [name for name, vectors in support.items() if not len(vectors)]
        if empty:
            raise InputError(f'class "{empty[0]}" has no image: give at least one')
        return replace(self, support={name: self._points(vectors) for name, vectors in support.items()})

    def rejecting(self, rate: float) -> "ExactRecogniser":
        return replace(self, rate=rate)

    def probabilities(self, vectors: np.ndarray) -> np.ndarray:
        return self.classifier.probabilities(self._points(vectors))

    def strange(self, vectors: np.ndarray) -> Strange:
        values = self.classifier.strangeness(self._points(vectors))
        return Strange(values, np.full_like(values, self.limit))

    def places(self, vectors: np.ndarray) -> Places:
        """Directions, of which two are 2 - 2 cos apart. Half way between what two images of one known class have in
        common and what two of different ones have, images are as likely of one class as not."""
        others = self._for_other_classes
        values = at_length_1(others.whitening(self._points(vectors)))
        found, classes = others.calibration, len(others.names)
        if found.left_out is None or classes < ENOUGH:
            return Places(values, None)
        means = others.means
        different = float(np.square(means.sum(0)).sum() - np.square(means).sum()) / (classes * (classes - 1))
        return Places(values, 2 - (found.signal + different) / (found.signal + found.noise))

    @cached_property
    def _for_other_classes(self) -> ExactClassifier:
        return ExactClassifier.for_other_classes(self.statistics)

    @cached_property
    def classifier(self) -> ExactClassifier:
        if self.support is None:
            return ExactClassifier.fitted(self.statistics)
        return self._for_other_classes.with_classes(self.support)
