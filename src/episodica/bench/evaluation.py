"""Evaluation: every image embedded once, against every episode embedded anew."""

from collections.abc import Iterator
from copy import deepcopy

import torch
from torch import Tensor

from episodica.bench import evaluation_workload
from episodica.bench.pairs import relation_section
from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, interleaved
from episodica.bench.workload import CPU, available_kernels
from episodica.engine.experiment import Experiment, new_learner
from episodica.engine.fused.accelerate import accelerate
from episodica.learners.learner import Learner
from episodica.types import Embedded, Episodes, Pool

SAMPLE = 10  # episodes that are embedded anew; the others would take as long each


def evaluation(effort: Effort) -> Iterator[Section]:
    effort = Effort(effort.rounds, 1, effort.clock)
    experiment = evaluation_workload.experiment()
    for pool, whose in ((experiment.stream.test[0], "of a task"), (experiment.stream.unseen, "of unseen classes")):
        yield _section(experiment, pool, whose, effort)
    yield relation_section(effort)


def _section(experiment: Experiment, pool: Pool, whose: str, effort: Effort) -> Section:
    learner, images, episodes = new_learner(experiment.config, CPU), len(pool.images()), evaluation_workload.EPISODES
    usual, sample = plain(learner), evaluation_workload.questions(pool, SAMPLE)
    accelerate(learner, available_kernels()[-1], lambda text: None)
    slow = f"re-embedding every episode ({SAMPLE} measured, times {episodes // SAMPLE})"
    cases = [
        Case(slow, lambda: by_episode(usual, sample, experiment), stands_for=episodes / SAMPLE),
        Case("embedding every image once", lambda: evaluation_workload.at_once(learner, experiment, pool, episodes)),
    ]
    rows = interleaved(cases, effort, reference=slow)
    return Section(f"Evaluation, {images:,} images {whose}, {episodes:,} episodes", rows)


def plain(learner: Learner) -> Learner:
    """As it is usually evaluated: nothing folded, and maps plane by plane."""
    return deepcopy(learner).eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]


@torch.no_grad()
def by_episode(learner: Learner, episodes: Episodes, experiment: Experiment) -> Tensor:
    """Accuracy of each episode, one after another."""
    found = []
    for rows in episodes.rows:
        embeddings = learner.embed(experiment.pixels(rows.flatten()).contiguous())
        episode = Embedded.of(embeddings.view(1, *rows.shape, -1), episodes.shots)
        found.append((learner.classify(episode).argmax(-1) == episode.labels).float().mean())
    return torch.stack(found)
