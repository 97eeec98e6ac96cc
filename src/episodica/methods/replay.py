"""Exemplars inside episodes: how classes of the past and of the current task are drawn together."""

from dataclasses import replace
from typing import Literal

from episodica.data.sampling import choose, choose_mixed, draw_episodes, draw_images, effective_way
from episodica.lazy_torch import Tensor, torch
from episodica.rng import StepGenerators
from episodica.types import Episodes, Pool, Pools, Shape


def check_share(p: float, way: int, or_else: str = "") -> None:
    """A fixed number of past classes an episode must be a whole number."""
    if not (way * p + 1e-9) % 1 < 1e-6:
        raise ValueError(
            f"p = {p} of a {way}-way episode is {way * p:g} classes, not a whole number: change p or the way{or_else}"
        )


def cross_task(
    pools: Pools,
    past: Pool,
    shape: Shape,
    p: float | Literal["rand"],
    strategy: Literal["fixed", "binomial"],
    rng: StepGenerators,
) -> tuple[Episodes, Tensor]:
    """Episodes of current classes and a share p of past ones, and which past classes they use [B, past classes]."""
    g, current = rng("mix"), len(pools.current)
    used = torch.zeros(shape.episodes, current + len(past), dtype=torch.bool)
    if p == 0:
        return draw_episodes(pools.current, shape, g), used[:, current:]
    if p == "rand":
        classes = choose(len(pools.seen), effective_way(len(pools.seen), shape.way), shape.episodes, g)
    else:
        share = round(shape.way * p)
        way = effective_way(min(current, shape.way - share) + min(len(past), share), shape.way)
        n_past = torch.full((shape.episodes,), share)
        if strategy == "binomial":
            n_past = (torch.rand(shape.episodes, way, generator=g) < p).sum(1)
        classes = choose_mixed(current, len(past), n_past, way, g)
    return draw_images(pools.seen, classes, shape, g), used.scatter_(1, classes, True)[:, current:]


def past_beside_current(
    pools: Pools, past: Pool, shape: Shape, n_past: int, n_current: int, rng: StepGenerators
) -> Episodes:
    """Episodes of so many past classes, which come first, and current ones, as far as there are so many."""
    g, n_past, n_current = rng("mix"), min(n_past, len(past)), min(n_current, len(pools.current))
    counts = torch.full((shape.episodes,), n_past)
    classes = choose_mixed(len(pools.current), len(past), counts, n_past + n_current, g)
    return replace(draw_images(pools.seen, classes, shape, g), past=n_past)


def exemplars_only(past: Pool, shape: Shape, rng: StepGenerators, avoid: Tensor | None = None) -> Episodes:
    """Episodes of past classes; those marked in `avoid` [B, past classes] only when the others run out."""
    g = rng("exemplar")
    classes = choose(len(past), effective_way(len(past), shape.way), shape.episodes, g, avoid=avoid)
    return draw_images(past, classes, shape, g)
