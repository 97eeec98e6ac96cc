"""Evaluation: every image embedded once, against every episode embedded anew."""

from collections.abc import Iterator
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor

from episodica.bench.pairs import relation_section
from episodica.bench.scene import CPU, available_kernels, noise
from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, interleaved
from episodica.config import resolve
from episodica.data.sampling import draw_episodes
from episodica.data.splits import make_split
from episodica.data.stream import TaskStream
from episodica.engine.embedder import folded
from episodica.engine.evaluate import embeddings_of, episode_accuracies
from episodica.engine.fused.accelerate import accelerate
from episodica.engine.problem import Problem, new_learner
from episodica.learners.learner import Learner
from episodica.rng import generator
from episodica.types import Embedded, Episodes, Pool, Shape

TASK, UNSEEN = 5, 20  # classes
TEST, ALL = 100, 600  # images of a class: test images of the task, all of the unseen
SIZE, EPISODES = 32, 1000
SAMPLE = 10  # episodes that are embedded anew; the others would take as long each


def evaluation(effort: Effort) -> Iterator[Section]:
    effort = Effort(effort.rounds, 1, effort.clock)
    problem = _problem()
    for pool, title in ((problem.stream.test[0], "of a task"), (problem.stream.unseen, "of unseen classes")):
        yield _section(problem, pool, title, effort)
    yield relation_section(effort)


def _problem() -> Problem:
    """One task and the unseen classes, as many as CIFAR-100 in 16 tasks has."""
    labels = np.repeat(np.arange(TASK + UNSEEN), ALL)
    split = make_split(labels, tasks=1, order="natural", seed=0, test_per_class=TEST, unseen=UNSEEN)
    names = tuple(str(c) for c in range(TASK + UNSEEN))
    config = resolve({"augment": {"size": SIZE}})
    return Problem(config, noise(len(labels), SIZE), split, TaskStream.of(split), names, CPU)


def _section(problem: Problem, pool: Pool, whose: str, effort: Effort) -> Section:
    learner = new_learner(problem.config, CPU)
    usual = plain(learner)
    accelerate(learner, available_kernels()[-1], lambda text: None)
    sample = draw_episodes(pool, Shape(5, 1, 15, SAMPLE), generator("bench", "evaluation"))
    slow = f"re-embedding every episode ({SAMPLE} measured, times {EPISODES // SAMPLE})"
    cases = [
        Case(slow, lambda: by_episode(usual, sample, problem), stands_for=EPISODES / SAMPLE),
        Case("embedding every image once", lambda: at_once(learner, problem, pool, Shape(5, 1, 15, EPISODES))),
    ]
    rows = interleaved(cases, effort, reference=slow)
    return Section(f"Evaluation, {len(pool.images()):,} images {whose}, {EPISODES:,} episodes", rows)


def at_once(learner: Learner, problem: Problem, pool: Pool, shape: Shape) -> Tensor:
    """Accuracy of each episode, by the engine."""
    examinee = folded(learner)
    embeddings = embeddings_of(examinee, pool, problem)
    return episode_accuracies(examinee, embeddings, pool, shape, generator("bench", "evaluation"))


def plain(learner: Learner) -> Learner:
    """As it is usually evaluated: nothing folded, and maps plane by plane."""
    return deepcopy(learner).eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]


@torch.no_grad()
def by_episode(learner: Learner, episodes: Episodes, problem: Problem) -> Tensor:
    """Accuracy of each episode, one after another."""
    found = []
    for rows in episodes.rows:
        embeddings = learner.embed(problem.pixels(rows.flatten()).contiguous())
        episode = Embedded.of(embeddings.view(1, *rows.shape, -1), episodes.shots)
        found.append((learner.classify(episode).argmax(-1) == episode.labels).float().mean())
    return torch.stack(found)
