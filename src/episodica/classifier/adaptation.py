"""At which depths a frozen encoder is looked at: its last block alone, or earlier blocks too.

The last block of an encoder that was trained on photographs tells photographs apart best; on glyphs earlier blocks
help (measured, see docs/learn.md). Nothing is trained, so models stay exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import Statistics

FIRST = 2  # the blocks before this one are not looked at; they were not tried
FOLDS = 3
SHOTS = 5  # images at most from which a class that was left out is known
NO_EARLIER_BLOCKS = "{} has no blocks before its last ones to look at: --adapt changes nothing"
LEAST = 2 * FOLDS  # classes, so that there are always two that were left out

Classes = Mapping[str, np.ndarray]  # the points of each class. int16 [n, D]


@dataclass(frozen=True)
class Paired:
    """Two ways to answer the same questions. Fractions."""

    before: float
    after: float
    interval: float  # 95 %, of the difference

    @classmethod
    def of(cls, before: np.ndarray, after: np.ndarray) -> "Paired":
        """Of what was answered rightly. [questions] each"""
        gain = after.astype(float) - before.astype(float)
        interval = 1.96 * float(gain.std(ddof=1)) / len(gain) ** 0.5 if len(gain) > 1 else float("inf")
        return cls(float(before.mean()), float(after.mean()), interval)

    @property
    def better(self) -> bool:
        """Beyond chance."""
        return self.after - self.before > self.interval

    def __str__(self) -> str:
        gain = 100 * (self.after - self.before)
        return f"{100 * self.before:.1f} to {100 * self.after:.1f} % ({gain:+.1f} ± {100 * self.interval:.1f} points)"


@dataclass(frozen=True)
class Comparison:
    held_out: Paired  # images of known classes, each left out in turn
    unseen: Paired  # classes, each left out in turn and then known from a few images

    @property
    def better(self) -> bool:
        return self.held_out.better and self.unseen.better


def compared(before: Classes, after: Classes) -> Comparison | None:
    """By the same images, in the same order, embedded in two ways; none where they are too few to tell."""
    names = sorted(name for name, found in before.items() if len(found) > 1)
    if len(names) < LEAST:
        return None
    one, other = ([_answered(classes, names, fold) for fold in range(FOLDS)] for classes in (before, after))
    held_out, unseen = (
        Paired.of(*(np.concatenate([fold[what] for fold in folds]) for folds in (one, other))) for what in (0, 1)
    )
    return Comparison(held_out, unseen)


def in_words(found: Comparison | None, depths: int) -> str:
    what = f"looking at the last {depths} blocks of the encoder instead of the last one"
    if found is None:
        return f"{what} was not tried: it takes {LEAST} classes with two images or more"
    numbers = f"{what}: held-out images {found.held_out}, unseen classes {found.unseen}"
    if not found.better:
        return f"{numbers}; not kept, because it is not better in both beyond chance"
    return (
        f"{numbers}; kept. The images may be far from what the encoder has seen: a network that is trained on them may "
        "recognise more (--backbone.name conv4)"
    )


def _answered(classes: Classes, names: Sequence[str], fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Which questions about a third of the images of two thirds of the classes, and about the other classes, are
    answered rightly by what is known of the rest."""
    left_out = names[fold::FOLDS]
    known, asked, others, unseen = {}, {}, {}, {}
    for name in names:
        found = classes[name]
        if name in left_out:
            shots = min(SHOTS, len(found) // 2)
            others[name], unseen[name] = found[:shots], found[shots:]
        else:
            aside = np.arange(len(found)) % FOLDS == min(fold, len(found) - 1)
            known[name], asked[name] = found[~aside], found[aside]
    statistics = Statistics.of(known, next(iter(known.values())).shape[1])
    few_shot = ExactClassifier.for_other_classes(statistics).with_classes(others)
    return _right(ExactClassifier.fitted(statistics), asked), _right(few_shot, unseen)


def _right(classifier: ExactClassifier, asked: Classes) -> np.ndarray:
    places = np.concatenate([np.full(len(found), classifier.names.index(name)) for name, found in asked.items()])
    return classifier.scores(np.concatenate(list(asked.values()))).argmax(1) == places
