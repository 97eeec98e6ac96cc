"""What is known of classes, as sums that add up exactly: adding, removing and merging never round.

An embedding is kept as a point on the unit sphere in fixed point, 16 bits a coordinate. Points are whole numbers of
`UNIT`, so their sums and products of pairs are whole numbers too, and double precision holds those exactly up to 2^53,
which eight million images do not reach. Therefore the sums do not depend on the order in which images came, and what is
left after a class was removed is, bit for bit, what there would be had it never come.

The points themselves are kept, and not each class's scatter: at 1280 dimensions a point is 2.5 KB (25 images: 64 KB), a
scatter 6.6 MB whatever the number of images. Points also tell what a scatter cannot: how each image would have been
answered had it not been there, which calibrates probabilities and the limit of the unknown.

All of it is numpy, here and in the modules that build on it: a command that asks a model need not load torch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

UNIT = 2.0**-15
LARGEST = 2**15 - 1
TINY = 1e-12  # in place of nothing, where something is divided by it


def points(embeddings: np.ndarray) -> np.ndarray:
    """Embeddings as directions in fixed point: [M, D] -> int16 [M, D]"""
    return rounded(directions(embeddings))


def rounded(directions: np.ndarray) -> np.ndarray:
    """[M, D] -> int16 [M, D] in `UNIT`s."""
    return (directions / UNIT).round().clip(-LARGEST, LARGEST).astype(np.int16)


def directions(embeddings: np.ndarray) -> np.ndarray:
    """Embeddings at length 1: [M, D] -> float64 [M, D].

    What comes out of a ReLU is never negative and has a few large values: its root is less skewed (Tukey's ladder).
    Embeddings with negative values are left as they are.
    """
    values = embeddings.astype(np.float64)
    positive = (values >= 0).all(-1, keepdims=True)
    return at_length_1(np.where(positive, np.sqrt(values.clip(min=0)), values))


def at_length_1(vectors: np.ndarray) -> np.ndarray:
    """What has no length stays as it is. [..., D]"""
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True).clip(min=TINY)


@dataclass(frozen=True, eq=False)
class Sums:
    """All that a shared covariance needs to know, in `UNIT`s: whole numbers in float64."""

    counts: np.ndarray  # images of each class. [C]
    sums: np.ndarray  # of the points of each class. [C, D]
    scatter: np.ndarray  # the sum of x x^T over all points. [D, D]

    @property
    def means(self) -> np.ndarray:
        """At most of length 1. [C, D]"""
        return self.sums / self.counts[:, None] * UNIT

    @property
    def spread(self) -> int:
        """How many independent deviations from class means there are."""
        return int(self.counts.sum()) - len(self.counts)

    @property
    def within(self) -> np.ndarray:
        """The covariance of images about the mean of their class, shared by all classes. [D, D]"""
        assert self.spread > 0, "no class has two images"
        means = self.sums / np.sqrt(self.counts)[:, None]
        return (self.scatter - means.T @ means) * (UNIT**2 / self.spread)


@dataclass(frozen=True, eq=False)
class Statistics:
    """The points of each class, by name, and the sums over them. Changes give a new value; the old one stays."""

    width: int  # D
    classes: Mapping[str, np.ndarray]  # int16 [n, D] each; names and points are in one canonical order
    scatter: np.ndarray  # the sum of x x^T over all points, in UNIT^2. float64 [D, D]

    @classmethod
    def none(cls, width: int) -> Self:
        return cls(width, {}, np.zeros((width, width)))

    @classmethod
    def of(cls, classes: Mapping[str, np.ndarray], width: int) -> Self:
        """Of the points of each class; the scatter is summed up anew."""
        known = {name: _canonical(classes[name]) for name in sorted(classes) if len(classes[name])}
        everything = stacked_points(known.values(), width)
        return cls(width, known, scatter_of(everything))

    def __len__(self) -> int:
        return len(self.classes)

    def add(self, name: str, new: np.ndarray) -> Self:
        """With more images of a class, which may be new."""
        assert new.dtype == np.int16
        assert new.shape[1:] == (self.width,)
        if not len(new):
            return self
        known = self.classes.get(name)
        together = _canonical(new if known is None else np.concatenate([known, new]))
        return self._with({**self.classes, name: together}, self.scatter + scatter_of(new))

    def remove(self, name: str) -> Self:
        """As if that class had never come."""
        rest = {other: kept for other, kept in self.classes.items() if other != name}
        return self._with(rest, self.scatter - scatter_of(self.classes[name]))

    def drop(self, name: str, gone: np.ndarray) -> Self:
        """As if these images of a class had never come; a class without images is gone."""
        lines = {line.tobytes() for line in gone}
        kept = self.classes[name]
        rest = kept[[line.tobytes() not in lines for line in kept]]
        assert len(kept) - len(rest) == len(gone), "they are images of the class, each once"
        classes = {**self.classes, name: rest} if len(rest) else {k: v for k, v in self.classes.items() if k != name}
        return self._with(classes, self.scatter - scatter_of(gone))

    def merge(self, other: Self) -> Self:
        """With all that another one knows; the images of a class that both know are put together."""
        assert other.width == self.width
        together = {
            name: _canonical(np.concatenate([part.classes[name] for part in (self, other) if name in part.classes]))
            for name in {*self.classes, *other.classes}
        }
        return self._with(together, self.scatter + other.scatter)

    def among(self, names: Iterable[str]) -> Self:
        """Of these classes alone."""
        wanted = set(names)
        gone = [name for name in self.classes if name not in wanted]
        if 2 * len(gone) > len(self):
            return type(self).of({name: kept for name, kept in self.classes.items() if name in wanted}, self.width)
        rest = self
        for name in gone:
            rest = rest.remove(name)
        return rest

    def turned(self, turn: Callable[[np.ndarray], np.ndarray]) -> Self:
        """What `turn` makes of each point, in the place that the point has here: what is found out about a row there
        is about the image of that row here. int16 [n, D] -> int16 [n, D]"""
        classes = {name: turn(kept) for name, kept in self.classes.items()}
        return type(self)(self.width, classes, scatter_of(stacked_points(classes.values(), self.width)))

    def _with(self, classes: Mapping[str, np.ndarray], scatter: np.ndarray) -> Self:
        return type(self)(self.width, {name: classes[name] for name in sorted(classes)}, scatter)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.classes)

    @cached_property
    def total(self) -> Sums:
        counts = np.array([len(kept) for kept in self.classes.values()], np.float64)
        sums = np.array([kept.sum(0, dtype=np.int64) for kept in self.classes.values()], np.float64)
        return Sums(counts, sums.reshape(-1, self.width), self.scatter)

    def arrays(self) -> dict[str, np.ndarray]:
        """What to write beside the names, 2 D bytes an image; the sums follow from it."""
        everything = stacked_points(self.classes.values(), self.width)
        return {"points": everything, "counts": self.total.counts.astype(np.int64)}

    @classmethod
    def from_arrays(cls, names: Iterable[str], arrays: Mapping[str, np.ndarray]) -> Self:
        everything, counts = arrays["points"], arrays["counts"]
        names = list(names)
        whole = everything.ndim == 2 and everything.dtype == np.int16 and counts.dtype == np.int64
        if not whole or counts.shape != (len(names),) or bool((counts < 1).any()) or counts.sum() != len(everything):
            raise ValueError(
                f"the points of {len(names)} classes do not fit their counts: the file is damaged, restore it"
            )
        parts = np.split(everything, counts.cumsum()[:-1]) if names else []
        return cls.of(dict(zip(names, parts, strict=True)), everything.shape[1])


def scatter_of(kept: np.ndarray) -> np.ndarray:
    """The sum of x x^T over points. int16 [M, D] -> float64 [D, D]"""
    exact = kept.astype(np.float64)
    return exact.T @ exact


def stacked_points(parts: Iterable[np.ndarray], width: int) -> np.ndarray:
    """Of several classes, or of none. int16 [M, D]"""
    return np.concatenate([np.empty((0, width), np.int16), *parts])


def _canonical(kept: np.ndarray) -> np.ndarray:
    """The points in an order that does not depend on how they came: that of their bytes."""
    lines = [line.tobytes() for line in kept]
    return kept[sorted(range(len(lines)), key=lines.__getitem__)]
