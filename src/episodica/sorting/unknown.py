"""Images that fit no class get a folder with those that they are like: one that there is already, or a new one."""

from collections.abc import Iterable
from tempfile import TemporaryFile

import numpy as np

from episodica.classifier.groups import ALONE, SEEDS, Clusters, group, usual_reach

CHUNK = 4096  # images at once


def numbers(
    places: Iterable[bytes], earlier: Iterable[tuple[int, bytes]], reach: float | None, first: int
) -> np.ndarray:
    """The number of each image's group, `ALONE` where it is like no other. New groups are numbered from `first` on.

    `earlier` are groups that there are already, with the places of their images, in the order of their numbers.
    """
    with TemporaryFile() as file, TemporaryFile() as rest_file:
        count = width = 0
        for place in places:
            width = len(place) // 4
            count += 1
            file.write(place)
        if not count:
            return np.zeros(0, np.int64)
        file.flush()
        rows = np.memmap(file, np.float32, "r", shape=(count, width))
        known, names, sample = _summed(earlier, width)
        if reach is None:
            everything = np.concatenate([sample, rows[:SEEDS]])[:SEEDS]
            reach = usual_reach(everything - everything.mean(0))
        found = np.full(count, -1)
        if len(names):
            for start in range(0, count, CHUNK):
                nearest = known.nearest(rows[start : start + CHUNK], reach)
                found[start : start + CHUNK] = np.where(nearest < 0, -1, names[nearest])
        rest = np.flatnonzero(found < 0)
        if len(rest):
            for start in range(0, len(rest), CHUNK):
                rest_file.write(rows[rest[start : start + CHUNK]].tobytes())
            rest_file.flush()
            labels = group(np.memmap(rest_file, np.float32, "r", shape=(len(rest), width)), reach)
            found[rest] = np.where(labels == ALONE, ALONE, labels + first - 1)
        return found


def _summed(earlier: Iterable[tuple[int, bytes]], width: int) -> tuple[Clusters, np.ndarray, np.ndarray]:
    """The groups, their numbers, and some of their images."""
    names: list[int] = []
    counts: list[int] = []
    sums: list[np.ndarray] = []
    squares: list[float] = []
    sample: list[np.ndarray] = []
    for name, place in earlier:
        row = np.frombuffer(place, np.float32)
        if not names or name != names[-1]:
            names.append(name)
            counts.append(0)
            sums.append(np.zeros(width))
            squares.append(0.0)
        counts[-1] += 1
        sums[-1] += row
        squares[-1] += float(np.square(row, dtype=np.float64).sum())
        if len(sample) < SEEDS // 2:
            sample.append(row)
    each = np.array(counts, np.float64)
    means = np.array(sums, np.float64).reshape(-1, width) / each[:, None]
    clusters = Clusters(each, means.astype(np.float32), (np.array(squares) / each).astype(np.float32))
    return clusters, np.array(names, np.int64), np.array(sample, np.float32).reshape(-1, width)
