"""How good a model without training is, class by class: each image is asked for as if it had never come."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from episodica.learners.calibration import LeftOut
from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import Statistics
from episodica.records.results import wilson_interval

SHOTS = (1, 2, 5, 10, 20)
ASKED = 1024  # images at most, for each number of shots
FEW = 5  # images from which more of them help less


@dataclass(frozen=True)
class Right:
    """How many answers were right."""

    right: int
    asked: int

    @property
    def share(self) -> float:
        return self.right / self.asked

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.share, self.asked)


def confusion(found: LeftOut, classes: int) -> np.ndarray:
    """How often images of each class (rows) were answered with each (columns). int64 [C, C]"""
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (np.asarray(found.labels), np.asarray(found.answers)), 1)
    return counts


def mixed_up(counts: np.ndarray) -> list[tuple[int, int, int, float]]:
    """Pairs of classes that are taken for each other, worst first: how often, and which share of the images of both."""
    asked = counts.sum(1)
    pairs = ((i, j, int(counts[i, j] + counts[j, i])) for i, j in combinations(range(len(counts)), 2))
    found = [(i, j, wrong, wrong / int(asked[i] + asked[j])) for i, j, wrong in pairs if wrong]
    return sorted(found, key=lambda pair: (-pair[2], -pair[3], pair[:2]))


def by_images(statistics: Statistics) -> Iterator[tuple[int, Right]]:
    """What is right where every class is known from so many images alone, and its others are asked for. Only classes
    that have more are in it, so each line is about those of the line before, or fewer."""
    for shots in SHOTS:
        enough = {name: points for name, points in statistics.classes.items() if len(points) > shots}
        if len(enough) < 2:
            return
        known = Statistics.of({name: points[:shots] for name, points in enough.items()}, statistics.width)
        each = max(1, ASKED // len(enough))
        asked = {name: enough[name][shots:][:each] for name in known.names}
        labels = np.repeat(np.arange(len(asked)), [len(points) for points in asked.values()])
        scores = ExactClassifier.fitted(known).scores(np.concatenate([*asked.values()]))
        yield shots, Right(int((np.asarray(scores).argmax(1) == labels).sum()), len(labels))


def wanting(counts: np.ndarray, images: np.ndarray) -> list[tuple[int, float | None, str]]:
    """Classes that need more images, neediest first: with the share of right answers, if any were asked, and why.

    Those with very few, and those that are recognised less often than all are, beyond chance.
    """
    asked, right = counts.sum(1), counts.diagonal()
    overall = right.sum() / max(1, asked.sum())
    found = []
    for i, number in enumerate(images.tolist()):
        share = float(right[i] / asked[i]) if asked[i] else None
        few = f"it is known from {number} {'image' if number == 1 else 'images'}: {FEW} or more help most"
        if number < FEW:
            found.append((i, share, few))
        elif share is not None and wilson_interval(share, int(asked[i]))[1] < overall:
            sentence = f"{100 * share:.0f} % of its images are recognised, and {100 * overall:.0f} % of all"
            found.append((i, share, sentence))
    return sorted(found, key=lambda line: (line[1] if line[1] is not None else -1.0, images[line[0]], line[0]))
