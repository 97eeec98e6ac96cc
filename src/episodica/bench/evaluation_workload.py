"""What evaluation is compared on: one task and unseen classes, as many as CIFAR-100 in 16 tasks has."""

from typing import Any

import numpy as np
from torch import Tensor

from episodica.bench.workload import CPU, noise
from episodica.config import resolve
from episodica.data.sampling import draw_episodes
from episodica.data.splits import make_split
from episodica.data.stream import TaskStream
from episodica.engine.embedder import folded
from episodica.engine.evaluate import embeddings_of, episode_accuracies
from episodica.engine.experiment import Experiment
from episodica.learners.learner import Learner
from episodica.rng import generator
from episodica.types import Episodes, Pool, Shape

TASK, UNSEEN = 5, 20  # classes
TEST, ALL = 100, 600  # images of a class: test images of the task, all of the unseen
SIZE, EPISODES = 32, 1000


def experiment(**sections: Any) -> Experiment:
    labels = np.repeat(np.arange(TASK + UNSEEN), ALL)
    split = make_split(labels, tasks=1, order="natural", seed=0, test_per_class=TEST, unseen=UNSEEN)
    names = tuple(str(c) for c in range(TASK + UNSEEN))
    config = resolve({"augment": {"size": SIZE}, **sections})
    return Experiment(config, noise(len(labels), SIZE), split, TaskStream.of(split), names, CPU)


def questions(pool: Pool, episodes: int) -> Episodes:
    """Such as the engine answers: the same where as many are drawn."""
    return draw_episodes(pool, Shape(5, 1, 15, episodes), generator("bench", "evaluation"))


def at_once(learner: Learner, experiment: Experiment, pool: Pool, episodes: int) -> Tensor:
    """Accuracy of each episode, by the engine."""
    evaluated = folded(learner).for_evaluation()
    embeddings = embeddings_of(evaluated, pool, experiment)
    return episode_accuracies(evaluated, embeddings, pool, Shape(5, 1, 15, episodes), generator("bench", "evaluation"))
