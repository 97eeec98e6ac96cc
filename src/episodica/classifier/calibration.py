"""How sure is sure: a temperature for probabilities, and limits beyond which nothing known fits.

Both are chosen on held-out images. The mean of k images lies off its class's centre by 1/k of the spread within the
class, so an image of that class is expected at (1 + 1/k) times the spread: distances are measured in that unit, and one
limit serves classes known from one image and from twenty.
"""

import numpy as np
from pydantic import Field

from episodica.config.sections import Section
from episodica.lazy_torch import F, Tensor, torch
from episodica.learners import conformal

FALSE_REJECTS = 0.05  # share of held-out images of known classes that are called unknown
TEMPERATURES = tuple(10 ** (i / 20 - 2) for i in range(121))


class Calibration(Section):
    temperature: float = Field(default=1.0, gt=0)
    """scores are divided by it before the softmax"""
    few_shot_temperature: float = Field(default=1.0, gt=0)
    """the same where every class is known from a few images only"""
    learned: float | None = None
    """limit of strangeness where the nearest class was learned by training; none: nothing is unknown"""
    remembered: float | None = Field(default=None, ge=0)
    """limit where the nearest class is known from a few images only"""


UNCALIBRATED = Calibration()


def strangeness(distances: Tensor, images: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest of C classes to each image, and how far it is for a class known from that many images. [M], [M]

    `distances` are squared, [M, C]; `images` says from how many each class is known, [C].
    """
    nearest = distances.argmin(1)
    return nearest, distances.gather(1, nearest[:, None])[:, 0] / (1 + 1 / images[nearest])


def fitted_temperature(scores: Tensor, labels: Tensor) -> float:
    """The temperature under which the right classes of held-out images are likeliest, of a fixed grid. [M, C], [M]

    Targets are smoothed as if two images more had been answered by chance (Platt 1999): a few images that are all
    answered rightly are no proof of certainty.
    """
    smoothing = 2 / (len(labels) + 2)
    losses = torch.stack([F.cross_entropy(scores / t, labels, label_smoothing=smoothing) for t in TEMPERATURES])
    return TEMPERATURES[int(losses.argmin())]


def limit(strange: Tensor, rejects: float = FALSE_REJECTS) -> float | None:
    """What that share of further images of known classes exceeds; none where there are no images to tell by."""
    return conformal.limit(strange.numpy(), np.ones(len(strange)), rejects) if len(strange) else None


def auroc(known: np.ndarray, unknown: np.ndarray) -> float:
    """How often an image of an unknown class is stranger than one of a known class; ties count half."""
    both = np.concatenate([known, unknown]).astype(np.float64)
    _, inverse, counts = np.unique(both, return_inverse=True, return_counts=True)
    middle_ranks = counts.cumsum(0) - (counts - 1) / 2
    ranks = middle_ranks[inverse[len(known) :]].sum()
    pairs = len(known) * len(unknown)
    return float((ranks - len(unknown) * (len(unknown) + 1) / 2) / pairs)
