"""Whether another way to embed is better than the encoder as it is: on held-out images and on classes left out.

Two ways are tried: to look at earlier blocks too, which helps on glyphs (measured, see docs/learn.md) and trains
nothing; and an adapter that is trained on the images.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import Statistics

FIRST = 2  # the blocks before this one are not looked at; they were not tried
FOLDS = 3
SHOTS = 5  # images at most from which a class that was left out is known
LEAST = 2 * FOLDS  # classes, so that there are always two that were left out

Classes = Mapping[str, np.ndarray]  # the points of each class. int16 [n, D]
Turn = Callable[[np.ndarray], np.ndarray]  # of points
FAR = (
    ". The images may be far from what the encoder has seen: a network that is trained on them may recognise more "
    "(--backbone.name conv4)"
)


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
    folds = _folds(before)
    return _compared(folds, [fold.of(after) for fold in folds]) if folds else None


def compared_with_training(
    classes: Classes, train: Callable[[Classes, int], Turn | None], on_trained: Callable[[], None] = lambda: None
) -> Comparison | None:
    """With what is trained on the known part of each fold (which has a number), and makes points of points."""
    folds = _folds(classes)
    turns = [train(fold.known, i) for i, fold in enumerate(folds)]
    if not folds or None in turns:
        return None
    on_trained()
    return _compared(folds, [fold.turned(turn) for fold, turn in zip(folds, turns, strict=True) if turn])


def in_words(found: Comparison | None, what: str, hint: str = "") -> str:
    if found is None:
        return f"{what} was not tried: it takes {LEAST} classes with a few images each"
    numbers = f"{what}: held-out images {found.held_out}, unseen classes {found.unseen}"
    return f"{numbers}; {f'kept{hint}' if found.better else 'not kept, because it is not better in both beyond chance'}"


def earlier_blocks_in_words(found: Comparison | None, depths: int) -> str:
    return in_words(found, f"looking at the last {depths} blocks of the encoder instead of the last one", FAR)


@dataclass(frozen=True, eq=False)
class Fold:
    """A third of the images of two thirds of the classes is asked for, and so are the other classes."""

    names: Sequence[str]
    number: int
    classes: Classes

    @property
    def _left_out(self) -> Sequence[str]:
        return self.names[self.number :: FOLDS]

    def _aside(self, points: np.ndarray) -> np.ndarray:
        return np.arange(len(points)) % FOLDS == min(self.number, len(points) - 1)

    @property
    def known(self) -> Classes:
        found = {name: self.classes[name] for name in self.names if name not in self._left_out}
        return {name: points[~self._aside(points)] for name, points in found.items()}

    def of(self, classes: Classes) -> "Fold":
        return Fold(self.names, self.number, classes)

    def turned(self, turn: Turn) -> "Fold":
        return self.of({name: turn(self.classes[name]) for name in self.names})

    def answered(self) -> tuple[np.ndarray, np.ndarray]:
        """Which questions about images held out of known classes, and about unseen classes, are answered rightly."""
        statistics = Statistics.of(self.known, next(iter(self.classes.values())).shape[1])
        asked = {name: points[self._aside(points)] for name in self.known for points in [self.classes[name]]}
        shots = {name: min(SHOTS, len(self.classes[name]) // 2) for name in self._left_out}
        few_shot = ExactClassifier.for_other_classes(statistics).with_classes(
            {name: self.classes[name][:k] for name, k in shots.items()}
        )
        unseen = {name: self.classes[name][k:] for name, k in shots.items()}
        return _right(ExactClassifier.fitted(statistics), asked), _right(few_shot, unseen)


def _folds(classes: Classes) -> list[Fold]:
    names = sorted(name for name, found in classes.items() if len(found) > 1)
    return [Fold(names, number, classes) for number in range(FOLDS)] if len(names) >= LEAST else []


def _compared(before: Sequence[Fold], after: Sequence[Fold]) -> Comparison:
    one, other = ([fold.answered() for fold in folds] for folds in (before, after))
    held_out, unseen = (
        Paired.of(*(np.concatenate([fold[what] for fold in folds]) for folds in (one, other))) for what in (0, 1)
    )
    return Comparison(held_out, unseen)


def _right(classifier: ExactClassifier, asked: Classes) -> np.ndarray:
    places = np.concatenate([np.full(len(found), classifier.names.index(name)) for name, found in asked.items()])
    return classifier.scores(np.concatenate(list(asked.values()))).argmax(1) == places
