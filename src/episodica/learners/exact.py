"""Class means in a whitened space, compared by cosine: fitted by sums, without training, and exact.

All that it uses are `Statistics`, which add up exactly. So the order of classes and batches does not matter, and a
class that was removed leaves nothing behind: whitening, temperature and the limit of the unknown are those of a model
that never saw it.

The mean of k images lies off the centre of its class by 1/k of the spread within it, so an image is expected to be less
like the mean of one image than like that of a hundred. A score is the cosine of image and mean less half of what is
expected, so that classes known from one image and from thousands compete fairly. What an image falls short of all that
is expected is its strangeness, with one limit for classes known from many images and from few.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from episodica.learners.calibration import UNCALIBRATED, Calibration, calibrated
from episodica.learners.statistics import Statistics, at_length_1
from episodica.learners.whitening import FOR_OTHER_CLASSES, Whitening

FALSE_REJECTS = 0.05


@dataclass(frozen=True, eq=False)
class ExactClassifier:
    whitening: Whitening
    names: tuple[str, ...]
    means: np.ndarray  # of the classes, whitened. float32 [C, D]
    counts: np.ndarray  # images of each class. float32 [C]
    calibration: Calibration = UNCALIBRATED

    @classmethod
    def fitted(cls, statistics: Statistics, least_shrinkage: float = 0.0) -> Self:
        """Of classes whose images are known."""
        known = statistics.total
        whitening = Whitening.of(known, least_shrinkage)
        means = whitening(known.means)
        calibration = calibrated(statistics, whitening, means)
        return cls(whitening, statistics.names, means, known.counts.astype(np.float32), calibration)

    @classmethod
    def for_other_classes(cls, statistics: Statistics) -> Self:
        """To be asked `with_classes` that are not among those that the statistics are of."""
        return cls.fitted(statistics, FOR_OTHER_CLASSES)

    def with_classes(self, support: Mapping[str, np.ndarray]) -> Self:
        """The same space and calibration with other classes: of each the points of its images, int16 [k, D].

        Where nothing is known of any class, all that can be known is what the support shows.
        """
        given = Statistics.of(support, len(self.whitening.centre))
        if not self.names:
            return type(self).for_other_classes(given)
        known = given.total
        return replace(
            self, names=given.names, means=self.whitening(known.means), counts=known.counts.astype(np.float32)
        )

    @cached_property
    def directions(self) -> np.ndarray:
        """Of the classes. float32 [C, D]"""
        return at_length_1(self.means)

    @cached_property
    def temperature(self) -> float:
        return self.calibration.temperature_for(self.counts)

    def cosines(self, points: np.ndarray) -> np.ndarray:
        """int16 [M, D] -> [M, C]"""
        return at_length_1(self.whitening(points)) @ self.directions.T

    def scores(self, points: np.ndarray) -> np.ndarray:
        """How well each class fits each image. [M, C]"""
        return self.calibration.scores(self.cosines(points), self.counts)

    def probabilities(self, points: np.ndarray) -> np.ndarray:
        return softmax(self.scores(points) / self.temperature)

    def strangeness(self, points: np.ndarray) -> np.ndarray:
        """How far each image falls short of what is expected of the class that fits it best. [M]"""
        return self.calibration.strangeness(self.cosines(points), self.counts)

    def limit(self, rejects: float = FALSE_REJECTS) -> float:
        """The strangeness that this share of the images of known classes exceeds."""
        return self.calibration.limit(rejects)

    def unknown(self, points: np.ndarray, rejects: float = FALSE_REJECTS) -> np.ndarray:
        """Which images are stranger than that. [M]"""
        return self.strangeness(points) > self.limit(rejects)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Of each line, also of no class. [M, C]"""
    shares = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
    return shares / shares.sum(1, keepdims=True)
