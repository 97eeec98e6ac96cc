"""Evaluation: each image is embedded once, then all episodes are drawn and answered in a few batched products.

Episodes depend on the split and `eval.seed` alone, so every method and every seed answers the same questions.
"""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor
from torch.nn.functional import normalize

from episodica.data.sampling import draw_classes, draw_images
from episodica.engine.embedder import Embeddings, embed_chunks, folded
from episodica.engine.problem import Problem
from episodica.learners.learner import Learner
from episodica.records.results import UNSEEN
from episodica.rng import generator
from episodica.types import Embedded, Episodes, Pool, Shape

EPISODES_DRAWN_AT_ONCE = 250
VALUES_AT_ONCE = 2**26


def examine(learner: Learner, problem: Problem, session: int) -> Iterator[tuple[str, Shape, Tensor]]:
    """Per-episode accuracies of the unseen classes and of each seen task ("1", "2", ...), for each shape asked for."""
    stream, config = problem.stream, problem.config
    examinee = folded(learner)  # encoder and classifier in evaluation mode
    pools = {UNSEEN: stream.unseen} | {str(task + 1): stream.test[task] for task in stream.seen(session)}
    for name, pool in pools.items():
        rows = pool.images()
        table = embed_chunks(examinee, rows, problem.pixels)
        embeddings = Embeddings.of(rows, normalize(table) if config.normalised else table)
        for shape in config.evaluation_shapes:
            g = generator("evaluation", config.eval.seed, name, shape.way, shape.shots)
            yield name, shape, episode_accuracies(examinee, embeddings, pool, shape, g, normalised=config.normalised)


def episode_accuracies(
    learner: Learner, embeddings: Embeddings, pool: Pool, shape: Shape, g: Generator, *, normalised: bool = False
) -> Tensor:
    """Share of queries answered rightly in each of B episodes drawn from a pool. [B]"""
    found = []
    with torch.no_grad():
        for classes in draw_classes(pool, shape, g).split(EPISODES_DRAWN_AT_ONCE):
            episodes = draw_images(pool, classes, shape, g)
            for rows in episodes.rows.split(answered_at_once(learner, embeddings, episodes)):
                batch = Embedded.of(embeddings[rows], episodes.shots)
                prototypes = learner.prototypes(batch.support)
                scores = learner.scores(normalize(prototypes, dim=-1) if normalised else prototypes, batch.query)
                answers = scores.argmax(-1)
                found.append((answers == batch.labels).float().mean(-1).cpu())
    return torch.cat(found)


def answered_at_once(learner: Learner, embeddings: Embeddings, episodes: Episodes) -> int:
    """As many episodes as fit into memory: their embeddings, and what the learner holds for each pair of images."""
    _, way, images = episodes.rows.shape
    embedding = embeddings.table.shape[1:]
    pairs = way * episodes.shots * way * (images - episodes.shots)
    return max(1, VALUES_AT_ONCE // (way * images * embedding.numel() + pairs * learner.pair_values(embedding)))
