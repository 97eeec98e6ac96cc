"""Images as places in the plane: those that are alike lie near each other (t-SNE, van der Maaten and Hinton 2008).

It begins with the two principal components and draws nothing at random, so the same images give the same map. What it
costs grows with the square of their number: beyond `EXACT` images some are placed so, evenly over the rows, and each
other one between those that it is most like.
"""

import numpy as np

EXACT = 600
STEPS, EXAGGERATED = 260, 80  # of the descent, and how many of them pull images together first
EXAGGERATION = 12.0
PERPLEXITY = 12.0  # neighbours that count: classes may have few images
COMPONENTS = 50
NEIGHBOURS = 3  # between which others are placed


def in_the_plane(rows: np.ndarray) -> np.ndarray:
    """From -1 to 1. [N, D] -> [N, 2]"""
    rows = _components(rows.astype(np.float32), min(COMPONENTS, *rows.shape)) if len(rows) > 1 else rows[:, :0]
    if len(rows) <= 4:
        return _framed(_two(rows))
    few = rows[np.linspace(0, len(rows) - 1, EXACT).astype(int)] if len(rows) > EXACT else rows
    places = _descended(_two(few), _likeness(_squared_distances(few, few)))
    return _framed(places if few is rows else _between(rows, few, places))


def _components(rows: np.ndarray, count: int) -> np.ndarray:
    """Principal components, the largest first; the sign of each is that of its largest entry."""
    centred = rows - rows.mean(0)
    left, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(1)])
    return (left * sizes * np.where(signs == 0, 1, signs))[:, :count]


def _two(rows: np.ndarray) -> np.ndarray:
    return np.pad(rows[:, :2], ((0, 0), (0, max(0, 2 - rows.shape[1]))))


def _squared_distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    found = np.square(one).sum(1)[:, None] + np.square(other).sum(1) - 2 * (one @ other.T)
    return np.maximum(found, 0)


def _likeness(distances: np.ndarray) -> np.ndarray:
    """Shares that sum to 1, each image with the same number of neighbours that count. [N, N]"""
    count = len(distances)
    wanted = np.log(min(PERPLEXITY, (count - 1) / 6 + 1))
    low, high = np.zeros(count), np.full(count, np.inf)
    sharpness = 1 / np.maximum(distances.mean(1), 1e-12)
    shares = distances
    for _ in range(40):
        shares = np.exp(-(distances - np.sort(distances, 1)[:, 1:2]) * sharpness[:, None])
        np.fill_diagonal(shares, 0)
        total = shares.sum(1)
        shares /= np.maximum(total, 1e-12)[:, None]
        entropy = -(shares * np.log(np.maximum(shares, 1e-30))).sum(1)
        low, high = np.where(entropy > wanted, sharpness, low), np.where(entropy > wanted, high, sharpness)
        sharpness = np.where(np.isinf(high), sharpness * 2, (low + high) / 2)
    both = (shares + shares.T) / (2 * count)
    return np.maximum(both, 1e-12).astype(np.float32)


def _descended(start: np.ndarray, likeness: np.ndarray) -> np.ndarray:
    places = (start / max(float(start[:, 0].std()), 1e-12) * 1e-2).astype(np.float32)
    rate = max(len(places) / EXAGGERATION, 1.0)  # more throws some of few images far out
    speed, gains = np.zeros_like(places), np.ones_like(places)
    for step in range(STEPS):
        near = 1 / (1 + _squared_distances(places, places))
        np.fill_diagonal(near, 0)
        pull = (likeness * (EXAGGERATION if step < EXAGGERATED else 1) - near / near.sum()) * near
        slope = 4 * (pull.sum(1)[:, None] * places - pull @ places)
        gains = np.clip(np.where(np.sign(slope) == np.sign(speed), gains * 0.8, gains + 0.2), 0.01, None)
        speed = (0.5 if step < EXAGGERATED else 0.8) * speed - rate * gains * slope
        places = places + speed
        places -= places.mean(0)
    return places


def _between(rows: np.ndarray, few: np.ndarray, places: np.ndarray) -> np.ndarray:
    """At the mean of the places of those that are most like each, which counts more the more it is."""
    distances = _squared_distances(rows, few)
    nearest = np.argsort(distances, 1, kind="stable")[:, :NEIGHBOURS]
    weights = 1 / (np.take_along_axis(distances, nearest, 1) + 1e-6)
    weights /= weights.sum(1, keepdims=True)
    return (places[nearest] * weights[..., None]).sum(1)


def _framed(places: np.ndarray) -> np.ndarray:
    if not len(places):
        return places
    middle = (places.max(0) + places.min(0)) / 2
    return (places - middle) / max(float(np.abs(places - middle).max()), 1e-12)
