"""A space in which images scatter alike in all directions about the mean of their class.

The covariance within classes is shared by all of them, and is shrunk towards a multiple of the identity, because it is
estimated from fewer images than it has entries:

    S_l = (1 - l) W + l tr(W)/D I          z(x) = L^-1 (x - centre)          L L^T = S_l

How much to shrink follows from the data in closed form. The oracle-approximating shrinkage (Chen, Wiesel, Eldar, Hero
2010) estimates W best; to tell classes apart, and more so classes that W has not seen, more is better (measured, see
docs/learners/whitened.md): its fourth root for the classes whose images W comes from, and 0.9 or more for others.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from episodica.learners.statistics import UNIT, Sums

ROOT = 4
FOR_OTHER_CLASSES = 0.9
SMALL = 64  # sides of matrices that are not halved
CENTRING = 2 / 3  # 1 forgets what all known classes have in common, which strangers lack


@dataclass(frozen=True, eq=False)
class Whitening:
    centre: np.ndarray  # float64 [D]
    inverse: np.ndarray | None  # L^-1, float32 [D, D]; none where nothing is known of the spread within classes
    shrinkage: float
    weight: float = 0.0  # of W in S_l, which is measured in units of tr(W)/D

    @classmethod
    def of(cls, known: Sums, least_shrinkage: float = 0.0) -> Self:
        """The centre lies between the origin and the mean of the classes, nearer to the origin where they are few, for
        then their mean is mostly what tells them apart."""
        classes, width = known.sums.shape
        if not classes:
            return cls(np.zeros(width), None, 1.0)
        centre = known.means.sum(0) * (CENTRING * (classes - 1) / classes**2)
        if known.spread < 1:
            return cls(centre, None, 1.0)
        within = known.within
        scale = float(within.trace()) / width
        if scale <= 0:  # copies of one image
            return cls(centre, None, 1.0)
        shrinkage = max(least_shrinkage, oracle_shrinkage(within, known.spread) ** (1 / ROOT))
        weight = (1 - shrinkage) / scale
        shrunk = (within * weight).astype(np.float32)
        shrunk.flat[:: width + 1] += shrinkage  # the diagonal
        return cls(centre, inverse_of_triangle(np.linalg.cholesky(shrunk)), shrinkage, weight)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """int16 points or means of such, in units of length. [M, D] -> float32 [M, D]"""
        lengths = points * UNIT if points.dtype == np.int16 else points
        centred = (lengths - self.centre).astype(np.float32)
        return centred if self.inverse is None else centred @ self.inverse.T


def inverse_of_triangle(lower: np.ndarray) -> np.ndarray:
    """Of a lower triangular matrix, by halves: nearly all of it is products of matrices, which are fast."""
    if len(lower) <= SMALL:
        return np.tril(np.linalg.inv(lower))
    half = len(lower) // 2
    found = np.zeros_like(lower)
    found[:half, :half] = inverse_of_triangle(lower[:half, :half])
    found[half:, half:] = inverse_of_triangle(lower[half:, half:])
    found[half:, :half] = -(found[half:, half:] @ lower[half:, :half]) @ found[:half, :half]
    return found


def oracle_shrinkage(covariance: np.ndarray, images: int) -> float:
    """Equation 23 of Chen et al. for a covariance estimated from so many independent deviations."""
    width = len(covariance)
    if width == 1:
        return 1.0
    squared_trace, squares = covariance.trace() ** 2, np.square(covariance).sum()
    off_identity = squares - squared_trace / width
    above = (1 - 2 / width) * squares + squared_trace
    below = (images + 1 - 2 / width) * off_identity
    return 1.0 if below <= 0 else min(1.0, float(above / below))
