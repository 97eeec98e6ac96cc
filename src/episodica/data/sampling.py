"""Episodes from pools, all at once: no loop over episodes, classes or images. Each draw takes its generator."""

from episodica.errors import InputError
from episodica.lazy_torch import Generator, Tensor, torch
from episodica.types import Episodes, Pool, Shape

MIN_WAY = 2


def draw_episodes(pool: Pool, shape: Shape, g: Generator) -> Episodes:
    """Episodes whose classes are drawn uniformly from a pool."""
    return draw_images(pool, draw_classes(pool, shape, g), shape, g)


def draw_classes(pool: Pool, shape: Shape, g: Generator) -> Tensor:
    """Positions in the pool of the classes of each episode. [B, N]"""
    return choose(len(pool), effective_way(len(pool), shape.way), shape.episodes, g)


def effective_way(available: int, way: int) -> int:
    """The way asked for, or as many classes as there are."""
    if available < MIN_WAY:
        raise InputError(f"an episode needs at least {MIN_WAY} classes and there is {available}: use fewer tasks")
    return min(available, way)


def choose(available: int, take: int, times: int, g: Generator, avoid: Tensor | None = None) -> Tensor:
    """`times` selections of `take` different numbers below `available`. [times, take]

    Numbers marked in `avoid` [times, available] are used only when the others run out.
    """
    keys = torch.rand(times, available, generator=g)
    if avoid is not None:
        keys += avoid
    return keys.argsort(dim=1)[:, :take]


def choose_mixed(current: int, past: int, n_past: Tensor, way: int, g: Generator) -> Tensor:
    """Positions in the pool [current classes, past classes], n_past[b] of them past. [B, way]

    Where one side has too few classes the other fills up; there must be `way` of them in all.
    """
    n_past = n_past.clamp(max(way - current, 0), past)[:, None]
    old = current + choose(past, min(past, way), len(n_past), g)
    new = choose(current, min(current, way), len(n_past), g)
    slot = torch.arange(way)
    return torch.cat([old, new], dim=1).gather(1, torch.where(slot < n_past, slot, old.shape[1] + slot - n_past))


def draw_images(pool: Pool, classes: Tensor, shape: Shape, g: Generator) -> Episodes:
    """Images of chosen classes, given as positions in the pool [B, N].

    Support images are distinct, queries too while they last: a class with fewer than K + Q images repeats queries
    among those that are not in its support set.
    """
    counts = pool.counts[classes][..., None]  # [B, N, 1]
    fewest, width = int(counts.min()), pool.rows.shape[1]
    if fewest < shape.shots + 1:
        raise InputError(
            f"a {shape.shots}-shot episode needs at least {shape.shots + 1} images of a class and one has {fewest}: "
            "lower shape.shots, or raise memory.per_class or memory.total"
        )
    keys = torch.rand(*classes.shape, width, generator=g)
    if fewest < width:
        keys.masked_fill_(torch.arange(width) >= counts, torch.inf)
    wanted = shape.shots + shape.queries
    order = keys.topk(min(wanted, width), largest=False).indices  # a random order of each class's images
    if fewest < wanted:
        place = torch.arange(wanted)
        repeated = shape.shots + (place - shape.shots) % (counts - shape.shots)
        order = order.gather(-1, torch.where(place < shape.shots, place, repeated))
    return Episodes(pool.rows[classes[..., None], order], shape.shots)
