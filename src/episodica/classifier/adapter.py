"""Points as a trained adapter turns them. What a model keeps are the points as the encoder gave them, so the adapter
can be trained anew with every class that came, or left out. What answers is `ExactRecogniser`, which knows them turned;
both have each image in the same row of its class.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from episodica.learners.statistics import UNIT, at_length_1, rounded


@dataclass(frozen=True, eq=False)
class PointAdapter:
    change: np.ndarray  # W of x + W x. float16 [D, D]

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """int16 [M, D] -> int16 [M, D]"""
        lengths = points * np.float32(UNIT)
        return rounded(at_length_1((lengths + lengths @ self.change.astype(np.float32).T).astype(np.float64)))


class HeldOut(NamedTuple):
    """What images tell of an adapter that was trained on others."""

    stranger: float = 0.0  # than images that it was trained on, by so much
    recognised: float | None = None  # the share of them
    asked: int = 0  # images


def unfit(change: np.ndarray, width: int) -> str | None:
    """What is wrong with an adapter from a file, for points of so many numbers."""
    if change.shape != (width, width) or change.dtype != np.float16:
        return f"an adapter of {list(change.shape)}, points of {width} numbers"
    return None if np.isfinite(change).all() else "weights are not finite numbers"
