"""Mini-batches of all seen classes, for the baselines that do not learn from episodes.

A class's label is its place in the order of arrival: past classes first, then the current ones.
"""

from math import ceil

from episodica.data.sampling import choose
from episodica.lazy_torch import Generator, Tensor, torch
from episodica.types import Batch, Pool, Pools, Shape

NO_EPISODES = ("train.lr", "train.decay", "train.parts", "train.bn")
"""What only those who learn from episodes with the common optimiser use."""


def arrived(pools: Pools) -> Pool:
    """All classes seen, in the order of arrival."""
    return pools.current if pools.past is None else Pool.merged([pools.past, pools.current])


def draw_batch(pool: Pool, size: int, g: Generator) -> Batch:
    """Different images of a pool, all equally likely."""
    places = (pool.rows >= 0).nonzero()  # [images, (class, image of it)]
    labels, images = places[torch.randperm(len(places), generator=g)[:size]].T
    return Batch(pool.rows[labels, images], labels)


def draw_balanced_batch(pool: Pool, size: int, g: Generator) -> Batch:
    """Images of a pool, all classes equally likely."""
    labels = torch.randint(len(pool), (size,), generator=g)
    images = (torch.rand(size, generator=g, dtype=torch.float64) * pool.counts[labels]).long()
    return Batch(pool.rows[labels, images], labels)


def draw_of_each(pool: Pool, count: int, g: Generator) -> Tensor:
    """Rows of `count` images of each class, different ones while they last. [C, count]"""
    keys = torch.rand(pool.rows.shape, generator=g).masked_fill(pool.rows < 0, torch.inf)
    places = torch.arange(count) % pool.counts[:, None]
    return pool.rows.gather(1, keys.argsort(dim=1).gather(1, places))


def draw_groups(pool: Pool, size: int, least: int, g: Generator) -> Batch:
    """Images of different classes, equally many of each (but for what does not divide), and at least so many."""
    classes = choose(len(pool), max(1, min(len(pool), size // least)), 1, g)[0]
    drawn = Pool(pool.classes[classes], pool.rows[classes], pool.counts[classes])
    rows = draw_of_each(drawn, ceil(size / len(classes)), g)
    return Batch(rows.T.flatten()[:size], classes.repeat(rows.shape[1])[:size])


def batch_steps(episodic: int, shape: Shape, size: int) -> int:
    """As many batches as hold the images that an episodic method sees in its steps."""
    return ceil(episodic * shape.images / size)
