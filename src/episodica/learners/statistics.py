"""What is known of classes, as sums that add up exactly: adding, removing and merging never round.

An embedding is kept as a point on the unit sphere in fixed point, 16 bits a coordinate. Points are whole numbers of
`UNIT`, so their sums and products of pairs are whole numbers too, and double precision holds those exactly up to 2^53,
which eight million images do not reach. Therefore the sums do not depend on the order in which images came, and what is
left after a class was removed is, bit for bit, what there would be had it never come.

The points themselves are kept, and not each class's scatter: at 1280 dimensions a point is 2.5 KB (25 images: 64 KB), a
scatter 6.6 MB whatever the number of images. Points also tell what a scatter cannot: how each image would have been
answered had it not been there, which calibrates probabilities and the limit of the unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from episodica.lazy_torch import F, Tensor, torch

UNIT = 2.0**-15
LARGEST = 2**15 - 1


def points(embeddings: Tensor) -> Tensor:
    """Embeddings as directions in fixed point: [M, D] -> int16 [M, D]"""
    return rounded(directions(embeddings))


def rounded(directions: Tensor) -> Tensor:
    """[M, D] -> int16 [M, D] in `UNIT`s."""
    return (directions / UNIT).round().clamp(-LARGEST, LARGEST).to(torch.int16)


def directions(embeddings: Tensor) -> Tensor:
    """Embeddings at length 1: [M, D] -> float64 [M, D].

    What comes out of a ReLU is never negative and has a few large values: its root is less skewed (Tukey's ladder).
    Embeddings with negative values are left as they are.
    """
    values = embeddings.double()
    positive = (values >= 0).all(-1, keepdim=True)
    return F.normalize(torch.where(positive, values.clamp(min=0).sqrt(), values), dim=-1)


@dataclass(frozen=True, eq=False)
class Sums:
    """All that a shared covariance needs to know, in `UNIT`s: whole numbers in float64."""

    counts: Tensor  # images of each class. [C]
    sums: Tensor  # of the points of each class. [C, D]
    scatter: Tensor  # the sum of x x^T over all points. [D, D]

    @property
    def means(self) -> Tensor:
        """At most of length 1. [C, D]"""
        return self.sums / self.counts[:, None] * UNIT

    @property
    def spread(self) -> int:
        """How many independent deviations from class means there are."""
        return int(self.counts.sum()) - len(self.counts)

    @property
    def within(self) -> Tensor:
        """The covariance of images about the mean of their class, shared by all classes. [D, D]"""
        assert self.spread > 0, "no class has two images"
        means = self.sums / self.counts[:, None].sqrt()
        return torch.addmm(self.scatter, means.T, means, alpha=-1) * (UNIT**2 / self.spread)


@dataclass(frozen=True, eq=False)
class Statistics:
    """The points of each class, by name, and the sums over them. Changes give a new value; the old one stays."""

    width: int  # D
    classes: Mapping[str, Tensor]  # int16 [n, D] each; names and points are in one canonical order
    scatter: Tensor  # the sum of x x^T over all points, in UNIT^2. float64 [D, D]

    @classmethod
    def none(cls, width: int) -> Self:
        return cls(width, {}, torch.zeros(width, width, dtype=torch.float64))

    @classmethod
    def of(cls, classes: Mapping[str, Tensor], width: int) -> Self:
        """Of the points of each class; the scatter is summed up anew."""
        known = {name: _canonical(classes[name]) for name in sorted(classes) if len(classes[name])}
        everything = torch.cat([torch.empty(0, width, dtype=torch.int16), *known.values()])
        return cls(width, known, scatter_of(everything))

    def __len__(self) -> int:
        return len(self.classes)

    def add(self, name: str, new: Tensor) -> Self:
        """With more images of a class, which may be new."""
        assert new.dtype == torch.int16
        assert new.shape[1:] == (self.width,)
        if not len(new):
            return self
        known = self.classes.get(name)
        together = _canonical(new if known is None else torch.cat([known, new]))
        return self._with({**self.classes, name: together}, self.scatter + scatter_of(new))

    def remove(self, name: str) -> Self:
        """As if that class had never come."""
        rest = {other: kept for other, kept in self.classes.items() if other != name}
        return self._with(rest, self.scatter - scatter_of(self.classes[name]))

    def drop(self, name: str, gone: Tensor) -> Self:
        """As if these images of a class had never come; a class without images is gone."""
        lines = {line.tobytes() for line in gone.numpy()}
        kept = self.classes[name]
        rest = kept[torch.tensor([line.tobytes() not in lines for line in kept.numpy()])]
        assert len(kept) - len(rest) == len(gone), "they are images of the class, each once"
        classes = {**self.classes, name: rest} if len(rest) else {k: v for k, v in self.classes.items() if k != name}
        return self._with(classes, self.scatter - scatter_of(gone))

    def merge(self, other: Self) -> Self:
        """With all that another one knows; the images of a class that both know are put together."""
        assert other.width == self.width
        together = {
            name: _canonical(torch.cat([part.classes[name] for part in (self, other) if name in part.classes]))
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

    def _with(self, classes: Mapping[str, Tensor], scatter: Tensor) -> Self:
        return type(self)(self.width, {name: classes[name] for name in sorted(classes)}, scatter)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.classes)

    @cached_property
    def total(self) -> Sums:
        counts = torch.tensor([len(kept) for kept in self.classes.values()], dtype=torch.float64)
        sums = [kept.sum(0, dtype=torch.int64).double() for kept in self.classes.values()]
        return Sums(counts, torch.stack(sums) if sums else torch.empty(0, self.width).double(), self.scatter)

    def tensors(self) -> dict[str, Tensor]:
        """What to write beside the names, 2 D bytes an image; the sums follow from it."""
        everything = torch.cat([torch.empty(0, self.width, dtype=torch.int16), *self.classes.values()])
        return {"points": everything, "counts": self.total.counts.long()}

    @classmethod
    def from_tensors(cls, names: Iterable[str], tensors: Mapping[str, Tensor]) -> Self:
        everything, counts = tensors["points"], tensors["counts"]
        names = list(names)
        whole = everything.ndim == 2 and everything.dtype == torch.int16 and counts.dtype == torch.int64
        if not whole or counts.shape != (len(names),) or bool((counts < 1).any()) or counts.sum() != len(everything):
            raise ValueError(
                f"the points of {len(names)} classes do not fit their counts: the file is damaged, restore it"
            )
        return cls.of(dict(zip(names, everything.split(counts.tolist()), strict=True)), everything.shape[1])


def scatter_of(kept: Tensor) -> Tensor:
    """The sum of x x^T over points. int16 [M, D] -> float64 [D, D]"""
    exact = kept.double()
    return exact.T @ exact


def _canonical(kept: Tensor) -> Tensor:
    """The points in an order that does not depend on how they came: that of their bytes."""
    lines = [line.tobytes() for line in kept.numpy()]
    return kept[torch.tensor(sorted(range(len(lines)), key=lines.__getitem__), dtype=torch.int64)]
