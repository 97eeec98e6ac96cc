"""The fast examination against one that embeds each image of each episode alone."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from episodica.data.sampling import draw_episodes
from episodica.engine import evaluate
from episodica.engine.embedder import Embeddings, embed_all
from episodica.engine.evaluate import answered_at_once, episode_accuracies, evaluate_session
from episodica.errors import InputError
from episodica.learners.relationnet import RelationNet
from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded
from episodica.types import Embedded, Episodes, Shape


def slow_accuracy(
    learner, experiment, rows: list[list[int]], shots: int, *, normalised: bool = False, mirrored: bool = False
) -> float:
    """Nearest class mean by explicit distances, one image at a time."""
    learner.eval()

    def scaled(vector: list[float]) -> list[float]:
        length = math.hypot(*vector) if normalised else 1
        return [x / length for x in vector]

    def embed(row: int) -> list[float]:
        image = experiment.pixels(torch.tensor([row]))
        with torch.no_grad():
            views = [scaled(learner.embed(x)[0].double().tolist()) for x in (image, image.flip(3))[: 1 + mirrored]]
        return scaled([sum(x) / len(views) for x in zip(*views, strict=True)])

    support = [[embed(row) for row in of_class[:shots]] for of_class in rows]
    means = [scaled([sum(x) / shots for x in zip(*images, strict=True)]) for images in support]
    right = []
    for label, of_class in enumerate(rows):
        for row in of_class[shots:]:
            query = embed(row)
            gaps = [sum((a - b) ** 2 for a, b in zip(query, mean, strict=True)) for mean in means]
            right.append(gaps.index(min(gaps)) == label)
    return sum(right) / len(right)


@pytest.mark.parametrize("shots", [1, 2])
def test_fast_and_slow_evaluation_agree(learner, experiment, stream, shots, monkeypatch):
    monkeypatch.setattr(evaluate, "EPISODES_DRAWN_AT_ONCE", 4)
    shape, pool = Shape(3, shots, 2, episodes=10), stream.unseen
    rows = pool.images()
    embeddings = Embeddings.of(rows, embed_all(learner, rows, experiment.pixels))
    found = episode_accuracies(learner, embeddings, pool, shape, generator("questions"))
    episodes = draw_episodes(pool, shape, generator("questions")).rows.tolist()
    assert found.tolist() == pytest.approx([slow_accuracy(learner, experiment, e, shots) for e in episodes])


@pytest.mark.parametrize("shots", [1, 2])
def test_normalised_centroids_are_those_of_the_slow_evaluation(learner, experiment, stream, make_config, shots):
    config = make_config({"eval.centroids": "normalised", "shape.shots": shots, "eval.episodes": 10, "eval.queries": 2})
    (_, shape, found), *_ = evaluate_session(learner, replace(experiment, config=config), 0)
    g = generator("evaluation", config.eval.seed, "unseen", shape.way, shots)
    episodes = draw_episodes(stream.unseen, shape, g).rows.tolist()
    expected = [slow_accuracy(learner, experiment, e, shots, normalised=True) for e in episodes]
    assert found.tolist() == pytest.approx(expected)
    assert expected != [slow_accuracy(learner, experiment, e, shots) for e in episodes]


@pytest.mark.parametrize("centroids", ["raw", "normalised"])
def test_mirror_images_are_those_of_the_slow_evaluation(learner, experiment, stream, make_config, centroids):
    config = make_config({"eval.centroids": centroids, "eval.mirrored": True, "eval.episodes": 10, "eval.queries": 2})
    (_, shape, found), *_ = evaluate_session(learner, replace(experiment, config=config), 0)
    g = generator("evaluation", config.eval.seed, "unseen", shape.way, shape.shots)
    episodes = draw_episodes(stream.unseen, shape, g).rows.tolist()
    slow = partial(slow_accuracy, learner, experiment, shots=shape.shots, normalised=centroids == "normalised")
    expected = [slow(e, mirrored=True) for e in episodes]
    assert found.tolist() == pytest.approx(expected)
    assert expected != [slow(e) for e in episodes]


def test_mirror_images_are_refused_where_maps_are_compared(make_config):
    with pytest.raises(InputError, match=r"eval\.mirrored"):
        make_config({"eval.mirrored": True, "learner.name": "relationnet", "backbone.pools": 2})


def test_unseen_classes_and_every_seen_task_are_examined(learner, experiment):
    for session, tasks in enumerate((["1"], ["1", "2"], ["1", "2", "3"])):
        found = list(evaluate_session(learner, experiment, session))
        assert [name for name, _, _ in found] == ["unseen", *tasks]
        assert all(shape == experiment.config.evaluation_shapes[0] for _, shape, _ in found)
        assert all(len(accuracies) == 20 for *_, accuracies in found)


def test_every_shape_asked_for_is_examined(learner, experiment, make_config):
    config = make_config({"eval.shots": [1, 2], "eval.way": [2, 3]})
    found = [
        (s.way, s.shots)
        for name, s, _ in evaluate_session(learner, replace(experiment, config=config), 0)
        if name == "1"
    ]
    assert found == [(3, 1), (2, 1), (2, 2), (3, 2)]


def test_questions_depend_on_the_evaluation_seed_alone(learner, experiment, make_config):
    def answers(**changes) -> list[float]:
        config = make_config(changes)
        return torch.cat([a for *_, a in evaluate_session(learner, replace(experiment, config=config), 1)]).tolist()

    assert answers() == answers(seed=5) == answers(**{"method.name": "ft", "train.lr": 0.5})
    assert answers() != answers(**{"eval.seed": 1})


def test_examination_leaves_the_learner_as_it_was(learner, experiment):
    learner.train()
    before = {name: tensor.clone() for name, tensor in learner.state_dict().items()}
    list(evaluate_session(learner, experiment, 2))
    assert learner.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.state_dict().items())


def test_embeddings_are_found_by_row():
    rows, table = torch.tensor([9, 2, 5]), torch.tensor([[90.0], [20.0], [50.0]])
    assert Embeddings.of(rows, table)[torch.tensor([[5, 9], [2, 5]])].squeeze(-1).tolist() == [[50, 90], [20, 50]]


def test_chunks_do_not_change_what_is_embedded(learner, experiment, stream):
    rows = torch.cat([stream.unseen.images()] * 12)
    found = embed_all(learner, rows, experiment.pixels)
    assert len(rows) > 250
    torch.testing.assert_close(found[: len(rows) // 12], found[-len(rows) // 12 :])


@pytest.fixture
def relation_net(experiment) -> RelationNet:
    """In training mode and with statistics unlike those of any batch."""
    with seeded("relation"):
        learner = RelationNet(backbone=Conv4(pools=2))
        learner.build_for(16)
    learner.embed(torch.randn(9, 3, 16, 16, generator=generator("noise")))
    learner.classify(Embedded.of(torch.randn(1, 2, 3, 64, 4, 4, generator=generator("maps")), 1))
    return learner.train()


def test_the_classifier_is_examined_with_its_running_statistics(relation_net, experiment, stream):
    """Question by question, query by query: nobody's batch leaks into an answer, whatever mode the learner is in."""
    for name, shape, found in evaluate_session(relation_net, experiment, 0):
        pool = stream.unseen if name == "unseen" else stream.test[0]
        g = generator("evaluation", experiment.config.eval.seed, name, shape.way, shape.shots)
        relation_net.eval()
        right = []
        for rows in draw_episodes(pool, shape, g).rows:
            with torch.no_grad():
                maps = relation_net.embed(experiment.pixels(rows.flatten())).unflatten(0, rows.shape)
                support, queries = maps[None, :, : shape.shots], maps[:, shape.shots :].flatten(0, 1)
                answers = [relation_net.classify(Embedded(support, query[None, None])).argmax() for query in queries]
            labels = torch.arange(shape.way).repeat_interleave(len(queries) // shape.way)
            right.append((torch.stack(answers) == labels).float().mean().item())
        relation_net.train()
        assert found.tolist() == pytest.approx(right)


@pytest.mark.parametrize("values", [1, 10_000, 200_000])
def test_how_many_episodes_are_answered_at_once_changes_no_answer(
    relation_net, learner, experiment, values, monkeypatch
):
    for evaluated in (relation_net, learner):
        whole = [accuracies.tolist() for *_, accuracies in evaluate_session(evaluated, experiment, 1)]
        with monkeypatch.context() as patch:
            patch.setattr(evaluate, "VALUES_AT_ONCE", values)
            assert [accuracies.tolist() for *_, accuracies in evaluate_session(evaluated, experiment, 1)] == whole


def test_episodes_at_once_fit_the_budget(relation_net, learner):
    episodes = Episodes(torch.zeros(250, 5, 16, dtype=torch.int64), 1)
    relations = answered_at_once(relation_net, torch.Size((64, 8, 8)), episodes)
    assert 1 < relations * 375 * 64 * 8 * 8 < evaluate.VALUES_AT_ONCE
    assert answered_at_once(learner, torch.Size((1600,)), episodes) >= 250


def test_embeddings_that_do_not_fit_into_memory_are_made_for_each_episode(relation_net, experiment, monkeypatch):
    at_once = [accuracies.tolist() for *_, accuracies in evaluate_session(relation_net, experiment, 1)]
    asked = []
    read = experiment.store.read
    monkeypatch.setattr(experiment.store, "read", lambda rows: asked.append(len(rows)) or read(rows))
    monkeypatch.setattr(evaluate, "VALUES_KEPT", 1000)
    monkeypatch.setattr(evaluate, "VALUES_AT_ONCE", 1)
    assert [accuracies.tolist() for *_, accuracies in evaluate_session(relation_net, experiment, 1)] == at_once
    assert len(asked) == 3 * (1 + 20)  # of each pool one image for the shape, then every episode its own
