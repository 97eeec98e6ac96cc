"""The exemplar memory: the only images of past tasks that remain.

A class's exemplars are chosen once, at the end of the session that learned it, and never again. The budget is either a
number for each class or a total that all seen classes share. Where exemplars are compressed, a class keeps as many as
take the bytes of its number of images without compression.
"""

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple, Protocol

from episodica.config.sections import MemoryConfig
from episodica.lazy_torch import F, Generator, Tensor, torch
from episodica.types import Pool

Embed = Callable[[Tensor], Tensor]  # rows [M] -> embeddings [M, *E]


class Compressed(Protocol):
    """Images that take fewer bytes than they have."""

    @property
    def plain_bytes(self) -> int: ...  # of an image without compression
    def bytes(self, rows: Tensor) -> Tensor: ...  # of each with it, [M]


class Kept(NamedTuple):
    """The exemplars of a class in the order of choice, and how far each was from its class mean, where needed."""

    rows: list[int]
    distances: list[float] | None


class Memory:
    def __init__(self, config: MemoryConfig) -> None:
        self.config = config
        self.kept: dict[int, Kept] = {}

    def __len__(self) -> int:
        return sum(len(kept.rows) for kept in self.kept.values())

    def pool(self) -> Pool | None:
        return Pool.of({c: kept.rows for c, kept in self.kept.items()}) if self.kept else None

    def quota(self, classes: int) -> int:
        """Exemplars of a new class when this many classes are seen: its number, or its share of the total."""
        shares = [self.config.per_class, ceil(self.config.total / classes) if self.config.total else None]
        return min(share for share in shares if share is not None)

    def smallest(self, classes: int) -> int:
        """What the poorest of this many classes is left with."""
        return min(self.quota(classes), self.config.total // classes if self.config.total else self.quota(classes))

    def add(self, pool: Pool, embed: Embed, g: Generator, compressed: Compressed | None = None) -> None:
        """Choose exemplars of new classes, then stay within the total."""
        quota = self.quota(len(self.kept) + len(pool))
        for c, rows in pool.by_class().items():
            count = min(quota, len(rows)) if compressed is None else len(rows)
            if self._needs_no_embedding:
                chosen, distances = at_random(rows, count, g), None
            else:
                embeddings = embed(rows).flatten(1).float().cpu()
                chosen = SELECT[self.config.select](embeddings, count, g)
                distances = distance_to_mean(embeddings)[chosen].tolist()
            if compressed is not None:
                chosen = chosen[: first_within(compressed.bytes(rows[chosen]), quota * compressed.plain_bytes)]
            self.kept[c] = Kept(rows[chosen].tolist(), distances and distances[: len(chosen)])
        while self.config.total is not None and len(self) > self.config.total:
            self._drop_one(max(self.kept.values(), key=lambda kept: len(kept.rows)), g)

    @property
    def _needs_no_embedding(self) -> bool:
        drops_farthest = self.config.total is not None and self.config.drop == "farthest"
        return self.config.select == "random" and not drops_farthest

    def _drop_one(self, kept: Kept, g: Generator) -> None:
        if self.config.drop == "farthest":
            assert kept.distances is not None
            place = max(range(len(kept.rows)), key=kept.distances.__getitem__)
        else:
            place = int(torch.randint(len(kept.rows), (), generator=g))
        del kept.rows[place]
        if kept.distances is not None:
            del kept.distances[place]

    def to_json(self) -> dict[str, Any]:
        return {str(c): kept._asdict() for c, kept in self.kept.items()}

    def restore(self, saved: dict[str, Any]) -> None:
        self.kept = {int(c): Kept(**kept) for c, kept in saved.items()}


def first_within(sizes: Tensor, most: int) -> int:
    """How many of the first together take no more than that."""
    return int((sizes.cumsum(0) <= most).sum())


def distance_to_mean(embeddings: Tensor) -> Tensor:
    return (embeddings - embeddings.mean(0)).norm(dim=1)


def nearest_to_centre(embeddings: Tensor, count: int, g: Generator) -> Tensor:
    return distance_to_mean(embeddings).argsort(stable=True)[:count]


def at_random(images: Tensor, count: int, g: Generator) -> Tensor:
    return torch.randperm(len(images), generator=g)[:count]


def herding(embeddings: Tensor, count: int, g: Generator) -> Tensor:
    """iCaRL's greedy rule on normalised features: the mean of the chosen stays closest to the mean of all."""
    features = F.normalize(embeddings)
    mean, total = features.mean(0), torch.zeros_like(features[0])
    free, chosen = torch.ones(len(features), dtype=torch.bool), []
    for k in range(1, count + 1):
        gaps = (mean - (total + features) / k).norm(dim=1).masked_fill(~free, torch.inf)
        best = int(gaps.argmin())
        chosen.append(best)
        free[best] = False
        total = total + features[best]
    return torch.tensor(chosen)


def near_centre_or_boundary(embeddings: Tensor, count: int, g: Generator) -> Tensor:
    """Each exemplar is, with equal probability, the nearest to or the farthest from the centre that is left."""
    order = distance_to_mean(embeddings).argsort(stable=True)
    near = torch.rand(count, generator=g) < 0.5
    return order[torch.where(near, near.cumsum(0) - 1, len(order) - (~near).cumsum(0))]


SELECT = {"ntc": nearest_to_centre, "random": at_random, "herding": herding, "rb": near_centre_or_boundary}
