"""The values that packages exchange: rows of an image store, never pixels.

Shape letters, here and everywhere: B episodes, N way, K shots, Q queries, C classes, W images of the largest class,
M images, D embedding width, *E any embedding shape ([D] for ProtoNets, a feature map for Relation Networks).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from episodica.lazy_torch import Tensor, torch


@dataclass(frozen=True, eq=False)
class Pool:
    """Classes and the rows of their images; rows beyond a class's count are padding (-1)."""

    classes: Tensor  # [C]
    rows: Tensor  # [C, W]
    counts: Tensor  # [C]

    @classmethod
    def of(cls, rows_by_class: Mapping[int, Sequence[int] | Tensor]) -> "Pool":
        lists = [torch.as_tensor(rows, dtype=torch.int64) for rows in rows_by_class.values()]
        counts = torch.tensor([len(rows) for rows in lists], dtype=torch.int64)
        padded = torch.full((len(lists), int(counts.max()) if lists else 0), -1, dtype=torch.int64)
        for line, rows in zip(padded, lists, strict=True):
            line[: len(rows)] = rows
        return cls(torch.tensor(list(rows_by_class), dtype=torch.int64), padded, counts)

    @classmethod
    def merged(cls, pools: Sequence["Pool"]) -> "Pool":
        return cls.of({c: rows for pool in pools for c, rows in pool.by_class().items()})

    def __len__(self) -> int:
        return len(self.classes)

    def by_class(self) -> dict[int, Tensor]:
        lines = zip(self.classes.tolist(), self.rows, self.counts.tolist(), strict=True)
        return {c: rows[:count] for c, rows, count in lines}

    def images(self) -> Tensor:
        """All rows, class after class, without padding. [M]"""
        return self.rows[self.rows >= 0]


@dataclass(frozen=True, eq=False)
class Pools:
    """All that a method may look at in a session: the current task and the exemplars of the past ones."""

    current: Pool
    past: Pool | None

    @cached_property
    def seen(self) -> Pool:
        return self.current if self.past is None else Pool.merged([self.current, self.past])


@dataclass(frozen=True)
class Shape:
    """N-way K-shot problems with Q queries a class, B of them at a time."""

    way: int
    shots: int
    queries: int
    episodes: int = 1

    @property
    def images(self) -> int:
        """Of all the problems together."""
        return self.episodes * self.way * (self.shots + self.queries)


@dataclass(frozen=True, eq=False)
class Episodes:
    """B few-shot problems of one shape: of each class the first K images are support, the others queries."""

    rows: Tensor  # [B, N, K + Q]
    shots: int
    past: int = 0  # the first so many classes are of past tasks, where a method's loss must know


@dataclass(frozen=True, eq=False)
class Batch:
    """Images with their place in a growing classifier, for methods that do not learn from episodes."""

    rows: Tensor  # [M]
    labels: Tensor  # [M]
    turns: Tensor | None = None  # [M] how often each image is turned by 90 degrees; none: all are upright


@dataclass(frozen=True, eq=False)
class Embedded:
    """Episodes after the encoder. Queries are flattened class by class, as `labels` says."""

    support: Tensor  # [B, N, K, *E]
    query: Tensor  # [B, N * Q, *E]
    past: int = 0  # as of the episodes

    @classmethod
    def of(cls, embeddings: Tensor, shots: int, past: int = 0) -> "Embedded":  # [B, N, K + Q, *E]
        return cls(embeddings[:, :, :shots], embeddings[:, :, shots:].flatten(1, 2), past)

    @property
    def current(self) -> "Embedded":
        """Without the classes of past tasks."""
        by_class = self.query.unflatten(1, (self.support.shape[1], -1))
        return Embedded(self.support[:, self.past :], by_class[:, self.past :].flatten(1, 2))

    @property
    def labels(self) -> Tensor:  # [N * Q]
        way = self.support.shape[1]
        device = self.query.device
        return torch.arange(way, device=device).repeat_interleave(self.query.shape[1] // way)

    @property
    def images(self) -> Tensor:  # [B, N * (K + Q), *E]
        return torch.cat([self.support.flatten(1, 2), self.query], dim=1)


@dataclass(frozen=True, eq=False)
class EmbeddedBatch:
    """A batch after the encoder, with the maps of every block that trains."""

    features: Tensor  # [M, D]
    maps: tuple[Tensor, ...]  # of each block that trains [M, channels, side, side]
    labels: Tensor  # [M]
