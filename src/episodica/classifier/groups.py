"""Images that fit no known class, put together by likeness: what a person would give one name.

Two groups are as unlike as their images are on average (average linkage, on squared distances). The two that are
least unlike are joined, again and again, until no two are within `reach`. What that gives does not depend on the order
of joining, so it is computed by chains of nearest neighbours (Murtagh 1983) in the square of the number of images.

That square is bounded: at most `SEEDS` images are joined with each other. Where there are more, a sample is; every
other image goes to the group that it is least unlike, if that is within reach, and of the rest another sample is taken,
up to `ROUNDS` times; in the end the groups of all samples are joined in the same way. What is left then, beyond
`SEEDS * ROUNDS` images that are like none of those looked at, counts as alone.

Images are ordered by a digest of their numbers and never by how they came, and the sample is the first of them by that
order; so the same images fall into the same groups, whatever their order. Copies of an image are one with more weight.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from episodica.files.digest import digest_of

SEEDS = 4096  # images joined with each other at once: a table of 64 MB
ROUNDS = 16
CHUNK = 4096  # images looked at at once
ALONE = 0
LARGEST = np.float32(1e12)


class Rows(Protocol):
    """Numbers that can be read in parts: an array, in memory or mapped from a file, or a tensor."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice | np.ndarray, /) -> object: ...


@dataclass(frozen=True, eq=False)
class Clusters:
    """All that average linkage needs to know of some groups."""

    counts: np.ndarray  # images in each. float64 [G]
    means: np.ndarray  # float32 [G, D]
    squares: np.ndarray  # mean squared lengths. float32 [G]

    @classmethod
    def of(cls, rows: np.ndarray, counts: np.ndarray) -> "Clusters":
        """One for each image."""
        return cls(counts.astype(np.float64), rows, np.square(rows).sum(1))

    def distances(self, rows: np.ndarray) -> np.ndarray:
        """The mean squared distance of each image to those of each group. [M, D] -> [M, G]"""
        return np.square(rows).sum(1)[:, None] + self.squares - 2 * (rows @ self.means.T)

    def nearest(self, rows: np.ndarray, reach: float) -> np.ndarray:
        """The group that each image is least unlike, -1 where none is within reach. [M, D] -> [M]"""
        distances = self.distances(rows)
        nearest = distances.argmin(1)
        return np.where(distances[np.arange(len(rows)), nearest] <= reach, nearest, -1)

    def joined(self, labels: np.ndarray) -> "Clusters":
        """Those with the same label put together; labels are 0 to the greatest. [G]"""
        counts = np.bincount(labels, self.counts)
        shares = (self.counts / counts[labels]).astype(np.float32)
        means = np.zeros((len(counts), self.means.shape[1]), np.float32)
        np.add.at(means, labels, self.means * shares[:, None])
        return Clusters(counts, means, np.bincount(labels, self.squares * shares).astype(np.float32))

    def among(self, chosen: np.ndarray) -> "Clusters":
        return Clusters(self.counts[chosen], self.means[chosen], self.squares[chosen])


def group(rows: Rows, reach: float | None = None) -> np.ndarray:
    """The number of each image's group: 1 for the largest and so on, `ALONE` where no other image is like it. [M]

    Within a group images are `reach` apart at most, by their mean squared distance. Without one it is half way from the
    typical distance of nearest neighbours to that of any two images, in a sample.
    """
    if not len(rows):
        return np.zeros(0, np.int64)
    kinds, first, copies = _distinct(rows)
    sample = _read(rows, first[:SEEDS])
    centre = sample.mean(0, dtype=np.float64).astype(np.float32)  # differences of large squares would round
    if reach is None:
        reach = usual_reach(sample - centre)
    labels = _grouped(rows, first, copies, centre, reach)
    return _by_size(labels, copies)[kinds]


def usual_reach(rows: np.ndarray) -> float:
    """From the images alone, of a space in which nothing says how unlike images of one class are. [M, D]"""
    if len(rows) < 3:
        return 0.0
    distances = _table(Clusters.of(rows, np.ones(len(rows))))
    nearest = distances.min(1)
    np.fill_diagonal(distances, 0.0)
    anywhere = distances.sum(dtype=np.float64) / (len(rows) * (len(rows) - 1))
    return float((np.median(nearest) + anywhere) / 2)


def _distinct(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each image the place of its kind in an order that depends on the numbers alone; of each kind the first image,
    and how many there are."""
    digests = np.empty(len(rows), np.uint64)
    for start in range(0, len(rows), CHUNK):
        part = _read(rows, slice(start, start + CHUNK)) + np.float32(0)  # there is a zero with a minus, too
        digests[start : start + len(part)] = [int(digest_of(row.tobytes(), size=8), 16) for row in part]
    _, first, kinds, copies = np.unique(digests, return_index=True, return_inverse=True, return_counts=True)
    return kinds, first, copies


def _grouped(rows: Rows, first: np.ndarray, copies: np.ndarray, centre: np.ndarray, reach: float) -> np.ndarray:
    """A label for each kind, -1 where none of those looked at is like it."""
    labels = np.full(len(first), -1)
    found: list[Clusters] = []
    waiting, label = np.arange(len(first)), 0
    for _ in range(ROUNDS):
        seeds, waiting = waiting[:SEEDS], waiting[SEEDS:]
        clusters = Clusters.of(_read(rows, first[seeds]) - centre, copies[seeds])
        of_seeds = linked(clusters, reach)
        clusters = clusters.joined(of_seeds)
        labels[seeds] = label + of_seeds
        several = np.flatnonzero(clusters.counts > 1)  # what nothing is like attracts nothing
        attractive = clusters.among(several)
        for chosen in _chunks(waiting if len(several) else waiting[:0]):
            nearest = attractive.nearest(_read(rows, first[chosen]) - centre, reach)
            near = nearest >= 0
            labels[chosen[near]] = label + several[nearest[near]]
        waiting = waiting[labels[waiting] < 0]
        found.append(clusters)
        label += len(clusters.counts)
        if not len(waiting):
            break
    return labels if len(found) == 1 else _joined_rounds(labels, found, reach)


def _joined_rounds(labels: np.ndarray, found: list[Clusters], reach: float) -> np.ndarray:
    """Groups of different samples may be alike: they are joined as images are. Where they are too many for that, the
    largest are, and others go to the one that they are least unlike."""
    every = Clusters(*(np.concatenate(parts) for parts in zip(*(_parts(one) for one in found), strict=True)))
    order = np.argsort(-every.counts, kind="stable")
    largest, others = order[:SEEDS], order[SEEDS:]
    names = np.arange(len(every.counts)) + len(largest)  # of their own
    names[largest] = linked(every.among(largest), reach)
    joined = every.among(largest).joined(names[largest])
    for chosen in _chunks(others):
        nearest = joined.nearest(every.means[chosen], reach)
        names[chosen[nearest >= 0]] = nearest[nearest >= 0]
    return np.where(labels < 0, -1, names[labels])


def _parts(clusters: Clusters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return clusters.counts, clusters.means, clusters.squares


def linked(clusters: Clusters, reach: float) -> np.ndarray:
    """Average linkage up to `reach`: a label from 0 on for each. [G]

    A chain goes from each cluster to its nearest until two are nearest to each other; those are joined. No join brings
    others nearer, so what is left of the chain stays true, and a chain that ends beyond reach has nothing to join.
    """
    distances, weights = _table(clusters), clusters.counts.copy()
    parents = np.arange(len(weights))
    done = np.zeros(len(weights), bool)
    chain: list[int] = []
    for start in range(len(weights)):
        while chain or not done[start]:
            if not chain:
                chain.append(start)
            last = chain[-1]
            nearest = int(distances[last].argmin())
            distance = distances[last, nearest]
            if distance > reach:
                done[chain] = True
                chain.clear()
            elif len(chain) > 1 and distances[last, chain[-2]] <= distance:
                gone, stays = sorted((chain.pop(), chain.pop()), reverse=True)
                _join(distances, weights, stays, gone)
                parents[gone], done[gone] = stays, True
            else:
                chain.append(nearest)
    for i, parent in enumerate(parents):  # joined ones point to earlier ones, which have their root already
        parents[i] = parents[parent]
    return np.unique(parents, return_inverse=True)[1]


def _table(clusters: Clusters) -> np.ndarray:
    """Squared distances of all with all; of each with itself, infinite. [G, G]"""
    distances = clusters.distances(clusters.means)
    distances += (clusters.squares - np.square(clusters.means).sum(1))[:, None]  # of groups, not of their means
    distances = np.maximum(distances, distances.T)  # which rounding alone can tell apart
    np.fill_diagonal(distances, np.inf)
    return distances


def _join(distances: np.ndarray, weights: np.ndarray, stays: int, gone: int) -> None:
    """The mean over both, which is what average linkage is; infinite from what is no more."""
    total = weights[stays] + weights[gone]
    both = distances[stays] * (weights[stays] / total) + distances[gone] * (weights[gone] / total)
    both[stays] = both[gone] = np.inf
    distances[stays], distances[:, stays] = both, both
    distances[gone], distances[:, gone] = np.inf, np.inf
    weights[stays] = total


def _by_size(labels: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """Numbers from 1 for groups of two images or more, the largest first, then by their first image. [K]"""
    known = labels >= 0
    names, firsts, inverse = np.unique(labels[known], return_index=True, return_inverse=True)
    sizes = np.bincount(inverse, copies[known], len(names)).astype(np.int64)
    order = np.lexsort((firsts, -sizes))
    numbers = np.empty(len(names), np.int64)
    numbers[order] = np.arange(1, len(names) + 1)
    numbers[sizes < 2] = ALONE
    found = np.full(len(labels), ALONE, np.int64)
    found[known] = numbers[inverse]
    return found


def _chunks(places: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(places), CHUNK):
        yield places[start : start + CHUNK]


def _read(rows: Rows, chosen: slice | np.ndarray) -> np.ndarray:
    """float32 [M, D], finite with its squares."""
    return np.clip(np.nan_to_num(np.asarray(rows[chosen], dtype=np.float32)), -LARGEST, LARGEST)
