"""Relation Networks: the engine's answers against every pair of maps put side by side and sent through the module."""

from copy import deepcopy

import torch
from torch import Tensor

from episodica.bench import evaluation_workload
from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, interleaved
from episodica.bench.workload import CPU, available_kernels
from episodica.engine.embedder import embed_chunks, folded
from episodica.engine.experiment import Experiment, new_learner
from episodica.engine.fused.accelerate import accelerate
from episodica.learners.relationnet import RelationNet
from episodica.types import Embedded, Episodes

SAMPLE = 5  # episodes whose pairs are scored from scratch
TOLERANCE = 1e-5


def relation_section(effort: Effort) -> Section:
    """The pairs' maps are given; the engine's time includes embedding the images."""
    experiment = evaluation_workload.experiment(learner={"name": "relationnet"}, backbone={"pools": 2})
    learner, pool, episodes = (
        new_learner(experiment.config, CPU),
        experiment.stream.test[0],
        evaluation_workload.EPISODES,
    )
    assert isinstance(learner, RelationNet)
    usual: RelationNet = deepcopy(learner).eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    accelerate(learner, available_kernels()[-1], lambda text: None)
    drawn = evaluation_workload.questions(pool, SAMPLE)
    given = embedded(usual, drawn, experiment)
    gap = float((engine_scores(learner, drawn, experiment) - pair_by_pair(usual, given)).abs().max())
    assert gap < TOLERANCE, f"scores differ by {gap:.1e}"
    slow = f"each pair from scratch ({SAMPLE} measured, times {episodes // SAMPLE})"
    cases = [
        Case(slow, lambda: pair_by_pair(usual, given), stands_for=episodes / SAMPLE),
        Case(
            "each image once, pairs by sums", lambda: evaluation_workload.at_once(learner, experiment, pool, episodes)
        ),
    ]
    rows = interleaved(cases, effort, reference=slow, warm=0)
    title = f"Relation Networks, {len(pool.images()):,} images of a task, {episodes:,} episodes"
    return Section(title, rows, [f"scores agree to {gap:.0e}"])


def embedded(learner: RelationNet, episodes: Episodes, experiment: Experiment) -> Embedded:
    maps = embed_chunks(learner, episodes.rows.flatten(), experiment.pixels).contiguous()
    return Embedded.of(maps.unflatten(0, tuple(episodes.rows.shape)), episodes.shots)


@torch.no_grad()
def engine_scores(learner: RelationNet, episodes: Episodes, experiment: Experiment) -> Tensor:
    """As evaluation computes them."""
    evaluated = folded(learner).for_evaluation()
    assert isinstance(evaluated, RelationNet)
    return evaluated.classify(embedded(evaluated, episodes, experiment))


@torch.no_grad()
def pair_by_pair(learner: RelationNet, episodes: Embedded) -> Tensor:
    """Episode after episode. [B, N * Q, N]"""
    pairs = zip(episodes.support, episodes.query, strict=True)
    return torch.stack([relations(learner, support, queries).mean(-1) for support, queries in pairs])


def relations(learner: RelationNet, support: Tensor, queries: Tensor) -> Tensor:
    """All pairs of an episode in one batch through the plain relation module. [N, K, *E], [M, *E] -> [M, N, K]"""
    n, k, m = *support.shape[:2], len(queries)
    left = support.flatten(0, 1).repeat(m, 1, 1, 1)
    right = queries.repeat_interleave(n * k, dim=0)
    return learner.relation(torch.cat([left, right], dim=1)).view(m, n, k)
