"""How sure is sure, from the images that a classifier is made of: each is asked for as if it had never come."""

import math
from dataclasses import dataclass, replace

import numpy as np

from episodica.learners.conformal import limit
from episodica.learners.statistics import TINY, Statistics, stacked_points
from episodica.learners.whitening import CENTRING, Whitening

ASKED = 1024  # images at most, evenly from all classes
TEMPERATURES = tuple(10 ** (-i / 20) for i in range(61))
LEAD = 0.25  # what a lead over the next class counts against strangeness
FAINTEST = 1e-3  # the least that signal and noise can be of what images are


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Images that were asked for as if they had never come. [A] each"""

    labels: np.ndarray  # the place of the class of each
    rows: np.ndarray  # and its place among the images of that class
    answers: np.ndarray  # the place of the class with the highest score
    weight: np.ndarray  # the same for each class, however many of its images were asked for
    strangeness: np.ndarray
    as_stranger: np.ndarray  # the same as if their class were not known

    @property
    def right(self) -> np.ndarray:
        return self.answers == self.labels


@dataclass(frozen=True, eq=False)
class Calibration:
    signal: float = 1.0  # squared distance of a class's centre from that of the space
    noise: float = 0.0  # squared distance of an image from the centre of its class
    temperature: float = 0.1  # for means of infinitely many images
    left_out: LeftOut | None = None  # none where no image could be

    def reliability(self, counts: np.ndarray) -> np.ndarray:
        """The cosine of the mean of so many images with the centre of their class."""
        return np.sqrt(self.signal / (self.signal + self.noise / counts))

    def expected(self, counts: np.ndarray) -> np.ndarray:
        """The cosine of another image of the class with that mean."""
        return self.reliability(counts) * (self.signal / (self.signal + self.noise)) ** 0.5

    def temperature_for(self, counts: np.ndarray) -> float:
        """The fewer images the means are of, the less a higher score proves."""
        if not counts.size:
            return self.temperature
        return self.temperature * float((1 / self.reliability(counts)).mean())

    def scores(self, cosines: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Half way between an image that has nothing of the class and one that is as expected, a class fits as well
        as it does not: what lies above counts. [M, C] with [C] or [M, C] -> [M, C]"""
        return cosines - self.expected(counts) / 2

    def strangeness(self, cosines: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """What each image falls short of what is expected of the class with the highest score, and more so where
        another class fits almost as well: strangers often lie between known classes. [M]"""
        scores = self.scores(cosines, counts)
        if not scores.shape[1]:
            return np.full(len(scores), np.inf)
        closest = scores.argmax(1, keepdims=True)
        short = np.take_along_axis(self.expected(counts) - cosines, closest, 1)[:, 0]
        if scores.shape[1] < 2:
            return short
        second, first = np.partition(scores, -2, axis=1)[:, -2:].T
        return short - LEAD * (first - second)

    def limit(self, rejects: float) -> float:
        """The strangeness that this share of further images of known classes exceeds. Where none is known, nothing is
        unknown."""
        asked = self.left_out
        return math.inf if asked is None else limit(asked.strangeness, asked.weight, rejects)


UNCALIBRATED = Calibration()


def calibrated(statistics: Statistics, whitening: Whitening, means: np.ndarray) -> Calibration:
    """Of the statistics' classes, whose whitened means are given. [C, D]"""
    asked, labels = _sample(statistics)
    if not len(asked):
        return UNCALIBRATED
    known = statistics.total
    counts = known.counts.astype(np.float32)
    xm, xx, mm = left_out_products(whitening(asked), labels, means, counts, whitening.weight / known.spread)
    total = max(float(xx.mean()), TINY)  # of its class's centre, which another image shares, and of noise
    signal = max(float(np.take_along_axis(xm, labels[:, None], 1).mean()), FAINTEST * total)
    found = Calibration(signal, max(total - signal, FAINTEST * total))
    own = one_hot(labels, len(counts))
    left = counts - own  # images of each class without the one asked for
    cosines = xm / np.sqrt((xx * mm).clip(min=TINY))
    scores = found.scores(cosines, left)
    others = own == 0
    left_out = LeftOut(
        labels=labels,
        rows=np.concatenate([np.arange(n) for n in np.bincount(labels)]),
        answers=scores.argmax(1),
        weight=1 / np.bincount(labels)[labels],
        strangeness=found.strangeness(cosines, left),
        as_stranger=found.strangeness(_among(cosines, others), _among(left, others)),
    )
    if len(statistics) < 2:
        return replace(found, left_out=left_out)
    temperature = _fitted_temperature(scores, labels) / found.temperature_for(left) * found.temperature
    return replace(found, temperature=temperature, left_out=left_out)


def _among(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Without the own class of each image: [M, C] -> [M, C - 1]"""
    return values[others].reshape(len(values), values.shape[1] - 1)


def left_out_products(
    z: np.ndarray, labels: np.ndarray, means: np.ndarray, counts: np.ndarray, weight: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of whitened images x [M, D] with class means m [C, D], as if each had never come: x m [M, C], x x [M, 1] and
    m m [M, C]. `weight` is that of a single deviation from its class's mean in the shrunk covariance.

    Without image x of class c, which had n images and lies d off its mean, that mean moves by -d/(n - 1), the centre by
    its part of that, and the covariance loses a multiple of d d^T. The inverse follows by Sherman and Morrison, so all
    is algebra on the products of what is there already; the amount of shrinkage stays as it is.
    """
    classes, n = len(means), counts[labels][:, None]
    d = z - means[labels]
    centre = CENTRING * (classes - 1) / classes**2 / (n - 1)  # from the new centre, x is z + centre d  [M, 1]
    step = centre - one_hot(labels, classes) / (n - 1)  # and mean k is mean k + step d  [M, C]
    zd, dd, md = (z * d).sum(1, keepdims=True), np.square(d).sum(1, keepdims=True), d @ means.T
    xd, m_d = zd + centre * dd, md + step * dd
    xx = np.square(z).sum(1, keepdims=True) + 2 * centre * zd + centre**2 * dd
    mm = np.square(means).sum(1) + 2 * step * md + step**2 * dd
    xm = z @ means.T + step * zd + centre * md + centre * step * dd
    lost = weight * n / (n - 1)
    gain = lost / (1 - lost * dd)
    return xm + gain * xd * m_d, xx + gain * xd**2, mm + gain * m_d**2


def _sample(statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
    """Points of classes with two images or more, always the same ones, and the places of their classes."""
    most = max(1, ASKED // max(1, len(statistics)))
    parts = [kept[:most] if len(kept) > 1 else kept[:0] for kept in statistics.classes.values()]
    labels = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return stacked_points(parts, statistics.width), labels


def _fitted_temperature(scores: np.ndarray, labels: np.ndarray) -> float:
    """Under which the right classes are likeliest, with two answers by chance more than there were (Platt 1999)."""
    smoothing = 2 / (len(labels) + 2)
    targets = (1 - smoothing) * one_hot(labels, scores.shape[1]) + np.float32(smoothing / scores.shape[1])
    losses = [-(targets * log_softmax(scores / t)).sum(1).mean() for t in TEMPERATURES]
    return TEMPERATURES[int(np.argmin(losses))]


def one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    """[M] -> float32 [M, C]"""
    return (labels[:, None] == np.arange(classes)).astype(np.float32)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Of each line. [M, C]"""
    below = scores - scores.max(1, keepdims=True)
    return below - np.log(np.exp(below).sum(1, keepdims=True))
