"""Relation Networks: the engine's answers against every pair of maps put side by side and sent through the module."""

import torch
from torch import Tensor

from episodica.bench.scene import CPU
from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, interleaved
from episodica.config import resolve
from episodica.data.sampling import draw_episodes
from episodica.engine.embedder import Embeddings, folded
from episodica.engine.evaluate import episode_accuracies
from episodica.engine.problem import new_learner
from episodica.learners.relationnet import RelationNet
from episodica.rng import generator
from episodica.types import Embedded, Pool, Shape

CLASSES, PER_CLASS = 5, 100
SIZE, EPISODES, SAMPLE = 32, 1000, 5
TOLERANCE = 1e-5


def relation_section(effort: Effort) -> Section:
    """Given the embeddings of a task's test images, the answers to its episodes."""
    config = resolve({"learner": {"name": "relationnet"}, "backbone": {"pools": 2}, "augment": {"size": SIZE}})
    learner = new_learner(config, CPU).eval()
    assert isinstance(learner, RelationNet)
    examinee, pool = folded(learner), _pool()
    embeddings = Embeddings.of(pool.images(), maps(len(pool.images()), learner.backbone.map_shape(SIZE)))
    drawn = draw_episodes(pool, Shape(5, 1, 15, SAMPLE), generator("bench", "pairs"))
    sample = Embedded.of(embeddings[drawn.rows], drawn.shots)
    with torch.no_grad():
        gap = float((examinee.classify(sample) - pair_by_pair(learner, sample)).abs().max())
    assert gap < TOLERANCE, f"scores differ by {gap:.1e}"

    def fast() -> Tensor:
        return episode_accuracies(examinee, embeddings, pool, Shape(5, 1, 15, EPISODES), generator("bench", "pairs"))

    slow = f"each pair from scratch ({SAMPLE} measured, times {EPISODES // SAMPLE})"
    learner.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    cases = [
        Case(slow, lambda: pair_by_pair(learner, sample), stands_for=EPISODES / SAMPLE),
        Case("each image's half once", fast),
    ]
    rows = interleaved(cases, effort, reference=slow, warm=0)
    return Section(f"Relation Networks, {EPISODES:,} episodes, given embeddings", rows, [f"scores agree to {gap:.0e}"])


def _pool() -> Pool:
    return Pool.of(dict(enumerate(torch.arange(CLASSES * PER_CLASS).view(CLASSES, PER_CLASS))))


def maps(images: int, shape: tuple[int, int, int]) -> Tensor:
    """Embeddings as an encoder gives them: not negative, channels-last."""
    drawn = torch.randn(images, *shape, generator=generator("bench", "maps")).relu_()
    return drawn.contiguous(memory_format=torch.channels_last)


@torch.no_grad()
def pair_by_pair(learner: RelationNet, episodes: Embedded) -> Tensor:
    """Episode after episode, all of its pairs in one batch through the plain relation module. [B, N * Q, N]"""
    found = []
    for support, queries in zip(episodes.support, episodes.query, strict=True):
        n, k, m = *support.shape[:2], len(queries)
        left = support.flatten(0, 1).repeat(m, 1, 1, 1)
        right = queries.repeat_interleave(n * k, dim=0)
        relations = learner.relation(torch.cat([left, right], dim=1).contiguous())
        found.append(relations.view(m, n, k).mean(-1))
    return torch.stack(found)
