"""Evaluation: each image is embedded once, then all episodes are drawn and answered in a few batched products.

Episodes depend on the split and `eval.seed` alone, so every method and every seed answers the same questions.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Generator, Size, Tensor
from torch.nn.functional import normalize

from episodica.data.sampling import draw_classes, draw_images, effective_way
from episodica.engine.embedder import VALUES_KEPT, EmbeddedWhenAsked, Embeddings, embed_chunks, folded
from episodica.engine.experiment import Experiment
from episodica.engine.frozen_part import FrozenPart
from episodica.engine.pair_table import PairTable, worthwhile
from episodica.learners.learner import Learner
from episodica.records.results import UNSEEN
from episodica.rng import generator
from episodica.types import Embedded, Episodes, Pool, Shape

EPISODES_DRAWN_AT_ONCE = 250
VALUES_AT_ONCE = 2**26


def evaluate_session(
    learner: Learner, experiment: Experiment, session: int, frozen: FrozenPart | None = None
) -> Iterator[tuple[str, Shape, Tensor]]:
    """Per-episode accuracies of the unseen classes and of each seen task ("1", "2", ...), for each shape asked for."""
    stream, config = experiment.stream, experiment.config
    if config.eval.mirrored:
        frozen = None  # what is kept was made of images as they are
    evaluated = folded(learner if frozen is None else frozen.above(learner)).for_evaluation()  # encoder and classifier
    pools = {UNSEEN: stream.unseen} | {str(task + 1): stream.test[task] for task in stream.seen(session)}
    for name, pool in pools.items():
        embeddings = embeddings_of(evaluated, pool, experiment, frozen)
        for shape in config.evaluation_shapes:
            g = generator("evaluation", config.eval.seed, name, shape.way, shape.shots)
            yield name, shape, episode_accuracies(evaluated, embeddings, pool, shape, g, normalised=config.normalised)


def embeddings_of(
    evaluated: Learner, pool: Pool, experiment: Experiment, frozen: FrozenPart | None = None
) -> Embeddings | EmbeddedWhenAsked:
    read = experiment.pixels if frozen is None else frozen.images.__getitem__
    config = experiment.config

    def embed_views(rows: Tensor, read: Callable[[Tensor], Tensor]) -> Tensor:
        embeddings = embed_chunks(evaluated, rows, read)
        return normalize(embeddings) if config.normalised else embeddings

    def embed(rows: Tensor) -> Tensor:
        embeddings = embed_views(rows, read)
        if not config.eval.mirrored:
            return embeddings
        mean = (embeddings + embed_views(rows, lambda chunk: read(chunk).flip(-1))) / 2
        return normalize(mean) if config.normalised else mean

    rows = pool.images()
    shape = embed(rows[:1]).shape[1:]
    if len(rows) * shape.numel() > VALUES_KEPT:
        return EmbeddedWhenAsked(embed, shape)
    return Embeddings.of(rows, embed(rows))


def episode_accuracies(
    learner: Learner,
    embeddings: Embeddings | EmbeddedWhenAsked,
    pool: Pool,
    shape: Shape,
    g: Generator,
    *,
    normalised: bool = False,
) -> Tensor:
    """Share of queries answered rightly in each of B episodes drawn from a pool. [B]"""
    found = []
    with torch.no_grad():
        table = _pair_table(learner, embeddings, pool, shape)
        for classes in draw_classes(pool, shape, g).split(EPISODES_DRAWN_AT_ONCE):
            episodes = draw_images(pool, classes, shape, g)
            labels = torch.arange(classes.shape[1]).repeat_interleave(shape.queries)
            if table is not None:
                found.append((table.answers(episodes.rows, shape.shots) == labels).float().mean(-1))
                continue
            for rows in episodes.rows.split(answered_at_once(learner, embeddings.shape, episodes)):
                batch = Embedded.of(embeddings[rows], episodes.shots)
                prototypes = learner.prototypes(batch.support)
                scores = learner.scores(normalize(prototypes, dim=-1) if normalised else prototypes, batch.query)
                found.append((scores.argmax(-1).cpu() == labels).float().mean(-1))
    return torch.cat(found)


def _pair_table(
    learner: Learner, embeddings: Embeddings | EmbeddedWhenAsked, pool: Pool, shape: Shape
) -> PairTable | None:
    known = isinstance(embeddings, Embeddings)
    way = effective_way(len(pool), shape.way)
    return PairTable.of(learner, embeddings) if known and worthwhile(learner, len(embeddings), way, shape) else None


def answered_at_once(learner: Learner, embedding: Size, episodes: Episodes) -> int:
    """As many episodes as fit into memory: their embeddings, and what the learner holds for each pair of images."""
    _, way, images = episodes.rows.shape
    pairs = way * episodes.shots * way * (images - episodes.shots)
    return max(1, VALUES_AT_ONCE // (way * images * embedding.numel() + pairs * learner.pair_values(embedding)))
