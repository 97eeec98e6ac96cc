"""Batches of all seen classes, for classifiers that grow with them.

A class's place in the classifier is its place in the order of arrival: past classes first, then the current ones.
"""

import torch
from torch import Generator, Tensor

from episodica.engine.access import Access
from episodica.types import Batch, Pool, Pools


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


def features(access: Access, rows: Tensor) -> Tensor:
    """Embeddings as the classifier gets them, in evaluation mode. [M, D]"""
    return access.embed(access.learner, rows).float().flatten(1)


def uniform(shape: tuple[int, ...], bound: float, g: Generator, like: Tensor) -> Tensor:
    return ((2 * torch.rand(shape, generator=g) - 1) * bound).to(like.device)
