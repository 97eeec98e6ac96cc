"""Both sides of every comparison give the same answers."""

import time

import pytest
import torch

from episodica.bench import evaluation, pairs
from episodica.bench.timing import Effort
from episodica.data.sampling import draw_episodes
from episodica.engine.embedder import folded
from episodica.engine.problem import new_learner
from episodica.rng import generator
from episodica.types import Embedded, Shape

ONCE = Effort(1, 1, time.perf_counter)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {evaluation: {"UNSEEN": 6, "TEST": 20, "ALL": 24, "SIZE": 16, "EPISODES": 6, "SAMPLE": 3}}
    sizes[pairs] = {"PER_CLASS": 20, "SIZE": 16, "EPISODES": 4, "SAMPLE": 2}
    for module, values in sizes.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


def test_episodes_embedded_anew_and_images_embedded_once_have_the_same_accuracies() -> None:
    problem = evaluation._problem()
    learner, pool, shape = new_learner(problem.config, evaluation.CPU), problem.stream.unseen, Shape(5, 1, 15, 6)
    at_once = evaluation.at_once(learner, problem, pool, shape)
    episodes = draw_episodes(pool, shape, generator("bench", "evaluation"))
    torch.testing.assert_close(evaluation.by_episode(evaluation.plain(learner), episodes, problem), at_once)


def test_pairs_from_scratch_have_the_scores_of_the_engine() -> None:
    config = evaluation.resolve({"learner": {"name": "relationnet"}, "backbone": {"pools": 2}})
    learner = new_learner(config, evaluation.CPU).eval()
    assert isinstance(learner, pairs.RelationNet)
    for shots in (1, 2):
        maps = pairs.maps(2 * 3 * 4, learner.backbone.map_shape(config.image_size))
        episodes = Embedded.of(maps.unflatten(0, (2, 3, 4)), shots)
        with torch.no_grad():
            fast = folded(learner).classify(episodes)
        torch.testing.assert_close(pairs.pair_by_pair(learner, episodes), fast, rtol=0, atol=1e-5)


def test_sections_name_how_much_was_measured() -> None:
    task, unseen, relation = evaluation.evaluation(ONCE)
    assert task.title == "Evaluation, 100 images of a task, 6 episodes"
    assert unseen.title == "Evaluation, 144 images of unseen classes, 6 episodes"
    assert task.rows[0].name == "re-embedding every episode (3 measured, times 2)"
    assert relation.rows[0].name == "each pair from scratch (2 measured, times 2)"
    assert all(row.ratio is not None for section in (task, unseen, relation) for row in section.rows)
