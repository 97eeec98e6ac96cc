"""How sure is sure, from the images that a classifier is made of: each is asked for as if it had never come."""

import math
from dataclasses import dataclass, replace

from episodica.lazy_torch import F, Tensor, torch
from episodica.learners.conformal import limit
from episodica.learners.statistics import Statistics
from episodica.learners.whitening import CENTRING, Whitening

ASKED = 1024  # images at most, evenly from all classes
TEMPERATURES = tuple(10 ** (-i / 20) for i in range(61))
LEAD = 0.25  # what a lead over the next class counts against strangeness
FAINTEST = 1e-3  # the least that signal and noise can be of what images are
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Images that were asked for as if they had never come. [A] each"""

    labels: Tensor  # the place of the class of each
    rows: Tensor  # and its place among the images of that class
    answers: Tensor  # the place of the class with the highest score
    weight: Tensor  # the same for each class, however many of its images were asked for
    strangeness: Tensor
    as_stranger: Tensor  # the same as if their class were not known

    @property
    def right(self) -> Tensor:
        return self.answers == self.labels


@dataclass(frozen=True, eq=False)
class Calibration:
    signal: float = 1.0  # squared distance of a class's centre from that of the space
    noise: float = 0.0  # squared distance of an image from the centre of its class
    temperature: float = 0.1  # for means of infinitely many images
    left_out: LeftOut | None = None  # none where no image could be

    def reliability(self, counts: Tensor) -> Tensor:
        """The cosine of the mean of so many images with the centre of their class."""
        return (self.signal / (self.signal + self.noise / counts)).sqrt()

    def expected(self, counts: Tensor) -> Tensor:
        """The cosine of another image of the class with that mean."""
        return self.reliability(counts) * (self.signal / (self.signal + self.noise)) ** 0.5

    def temperature_for(self, counts: Tensor) -> float:
        """The fewer images the means are of, the less a higher score proves."""
        return self.temperature * float(self.reliability(counts).reciprocal().mean())

    def scores(self, cosines: Tensor, counts: Tensor) -> Tensor:
        """Half way between an image that has nothing of the class and one that is as expected, a class fits as well
        as it does not: what lies above counts. [M, C] with [C] or [M, C] -> [M, C]"""
        return cosines - self.expected(counts) / 2

    def strangeness(self, cosines: Tensor, counts: Tensor) -> Tensor:
        """What each image falls short of what is expected of the class with the highest score, and more so where
        another class fits almost as well: strangers often lie between known classes. [M]"""
        scores = self.scores(cosines, counts)
        if not scores.shape[1]:
            return scores.new_full((len(scores),), math.inf)
        closest = scores.argmax(1, keepdim=True)
        short = (self.expected(counts) - cosines).gather(1, closest)[:, 0]
        if scores.shape[1] < 2:
            return short
        first, second = scores.topk(2, 1).values.T
        return short - LEAD * (first - second)

    def limit(self, rejects: float) -> float:
        """The strangeness that this share of further images of known classes exceeds. Where none is known, nothing is
        unknown."""
        asked = self.left_out
        return math.inf if asked is None else limit(asked.strangeness.numpy(), asked.weight.numpy(), rejects)


UNCALIBRATED = Calibration()


def calibrated(statistics: Statistics, whitening: Whitening, means: Tensor) -> Calibration:
    """Of the statistics' classes, whose whitened means are given. [C, D]"""
    asked, labels = _sample(statistics)
    if not len(asked):
        return UNCALIBRATED
    known = statistics.total
    counts = known.counts.float()
    xm, xx, mm = left_out_products(whitening(asked), labels, means, counts, whitening.weight / known.spread)
    total = float(xx.mean())  # an image is the centre of its class and noise; another one shares the centre alone
    signal = max(float(xm.gather(1, labels[:, None]).mean()), FAINTEST * total)
    found = Calibration(signal, max(total - signal, FAINTEST * total))
    own = F.one_hot(labels, len(counts))
    left = counts.expand_as(xm) - own  # images of each class without the one asked for
    cosines = xm / (xx * mm).clamp(min=TINY).sqrt()
    scores = found.scores(cosines, left)
    others = ~own.bool()
    left_out = LeftOut(
        labels=labels,
        rows=torch.cat([torch.arange(n) for n in torch.bincount(labels).tolist()]),
        answers=scores.argmax(1),
        weight=1 / torch.bincount(labels)[labels],
        strangeness=found.strangeness(cosines, left),
        as_stranger=found.strangeness(_among(cosines, others), _among(left, others)),
    )
    if len(statistics) < 2:
        return replace(found, left_out=left_out)
    temperature = _fitted_temperature(scores, labels) / found.temperature_for(left) * found.temperature
    return replace(found, temperature=temperature, left_out=left_out)


def _among(values: Tensor, others: Tensor) -> Tensor:
    """Without the own class of each image: [M, C] -> [M, C - 1]"""
    return values[others].view(len(values), -1)


def left_out_products(
    z: Tensor, labels: Tensor, means: Tensor, counts: Tensor, weight: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of whitened images x [M, D] with class means m [C, D], as if each had never come: x m [M, C], x x [M, 1] and
    m m [M, C]. `weight` is that of a single deviation from its class's mean in the shrunk covariance.

    Without image x of class c, which had n images and lies d off its mean, that mean moves by -d/(n - 1), the centre by
    its part of that, and the covariance loses a multiple of d d^T. The inverse follows by Sherman and Morrison, so all
    is algebra on the products of what is there already; the amount of shrinkage stays as it is.
    """
    classes, n = len(means), counts[labels][:, None]
    d = z - means[labels]
    centre = CENTRING * (classes - 1) / classes**2 / (n - 1)  # from the new centre, x is z + centre d  [M, 1]
    step = centre - F.one_hot(labels, classes) / (n - 1)  # and mean k is mean k + step d  [M, C]
    zd, dd, md = (z * d).sum(1, keepdim=True), d.square().sum(1, keepdim=True), d @ means.T
    xd, m_d = zd + centre * dd, md + step * dd
    xx = z.square().sum(1, keepdim=True) + 2 * centre * zd + centre.square() * dd
    mm = means.square().sum(1) + 2 * step * md + step.square() * dd
    xm = z @ means.T + step * zd + centre * md + centre * step * dd
    lost = weight * n / (n - 1)
    gain = lost / (1 - lost * dd)
    return xm + gain * xd * m_d, xx + gain * xd.square(), mm + gain * m_d.square()


def _sample(statistics: Statistics) -> tuple[Tensor, Tensor]:
    """Points of classes with two images or more, always the same ones, and the places of their classes."""
    most = max(1, ASKED // max(1, len(statistics)))
    parts = [kept[:most] if len(kept) > 1 else kept[:0] for kept in statistics.classes.values()]
    asked = torch.cat([torch.empty(0, statistics.width, dtype=torch.int16), *parts])
    return asked, torch.arange(len(parts)).repeat_interleave(
        torch.tensor([len(part) for part in parts], dtype=torch.int64)
    )


def _fitted_temperature(scores: Tensor, labels: Tensor) -> float:
    """Under which the right classes are likeliest, with two answers by chance more than there were (Platt 1999)."""
    smoothing = 2 / (len(labels) + 2)
    losses = torch.stack([F.cross_entropy(scores / t, labels, label_smoothing=smoothing) for t in TEMPERATURES])
    return TEMPERATURES[int(losses.argmin())]
