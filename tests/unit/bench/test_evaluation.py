"""Both sides of every comparison give the same answers."""

import time
from typing import Any

import pytest
import torch

from episodica.bench import evaluation, evaluation_workload, pairs
from episodica.bench.timing import Effort
from episodica.bench.workload import CPU
from episodica.engine.experiment import new_learner
from episodica.learners.relationnet import RelationNet

ONCE = Effort(1, 1, time.perf_counter)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"UNSEEN": 6, "TEST": 20, "ALL": 24, "SIZE": 16, "EPISODES": 6}.items():
        monkeypatch.setattr(evaluation_workload, name, value)
    monkeypatch.setattr(evaluation, "SAMPLE", 3)
    monkeypatch.setattr(pairs, "SAMPLE", 2)


def test_episodes_embedded_anew_and_images_embedded_once_have_the_same_accuracies() -> None:
    experiment = evaluation_workload.experiment()
    learner, pool = new_learner(experiment.config, CPU), experiment.stream.unseen
    by_episode = evaluation.by_episode(evaluation.plain(learner), evaluation_workload.questions(pool, 6), experiment)
    torch.testing.assert_close(by_episode, evaluation_workload.at_once(learner, experiment, pool, 6))


@pytest.mark.parametrize("shots", ["pairs", "mean"])
def test_pairs_from_scratch_have_the_scores_of_the_engine(shots: Any) -> None:
    experiment = evaluation_workload.experiment(learner={"name": "relationnet", "shots": shots}, backbone={"pools": 2})
    learner, drawn = (
        new_learner(experiment.config, CPU).eval(),
        evaluation_workload.questions(experiment.stream.test[0], 3),
    )
    assert isinstance(learner, RelationNet)
    slow = pairs.pair_by_pair(learner, pairs.embedded(learner, drawn, experiment))
    torch.testing.assert_close(pairs.engine_scores(learner, drawn, experiment), slow, rtol=0, atol=1e-5)


def test_sections_name_how_much_was_measured() -> None:
    task, unseen, relation = evaluation.evaluation(ONCE)
    assert task.title == "Evaluation, 100 images of a task, 6 episodes"
    assert unseen.title == "Evaluation, 144 images of unseen classes, 6 episodes"
    assert task.rows[0].name == "re-embedding every episode (3 measured, times 2)"
    assert relation.rows[0].name == "each pair from scratch (2 measured, times 3)"
    assert all(row.ratio is not None for section in (task, unseen, relation) for row in section.rows)
