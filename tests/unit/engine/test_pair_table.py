"""Answers looked up in a table of pairs against those of the learner itself."""

from typing import Any

import pytest
import torch

from episodica.data.sampling import draw_episodes
from episodica.engine import evaluate, pair_table
from episodica.engine.embedder import Embeddings, embed_all, folded
from episodica.engine.pair_table import PairTable, worthwhile
from episodica.learners.relationnet import RelationNet
from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded
from episodica.types import Embedded, Shape


@pytest.fixture
def make_relation_net():
    def make(shots: Any) -> RelationNet:
        with seeded("pair table"):
            learner = RelationNet(backbone=Conv4(pools=2), shots=shots)
            learner.build_for(16)
        return folded(learner).for_evaluation()  # type: ignore[return-value]

    return make


@pytest.mark.parametrize(("form", "shots"), [("pairs", 1), ("pairs", 2), ("mean", 1), ("sum", 1)])
@pytest.mark.parametrize("values", [1, 2**24])
def test_answers_are_those_of_the_learner(make_relation_net, experiment, stream, form, shots, values, monkeypatch):
    monkeypatch.setattr(pair_table, "VALUES_AT_ONCE", values)
    learner, rows = make_relation_net(form), stream.unseen.images()
    embeddings = Embeddings.of(rows, embed_all(learner, rows, experiment.pixels))
    episodes = draw_episodes(stream.unseen, Shape(3, shots, 2, episodes=5), generator("questions"))
    with torch.no_grad():
        table = PairTable.of(learner, embeddings)
        expected = learner.classify(Embedded.of(embeddings[episodes.rows], shots)).argmax(-1)
    assert table.scores.shape == (len(rows), len(rows))
    assert torch.equal(table.answers(episodes.rows, shots), expected)


def test_a_table_is_made_where_the_episodes_relate_more_pairs(make_relation_net, learner):
    relating = make_relation_net("pairs")
    shape = Shape(5, 1, 15, episodes=1000)  # 375,000 pairs
    assert worthwhile(relating, 500, 5, shape)
    assert not worthwhile(relating, 12_000, 5, shape)
    assert not worthwhile(make_relation_net("mean"), 500, 5, Shape(5, 5, 15, episodes=1000))
    assert not worthwhile(learner, 500, 5, shape)


def test_accuracies_are_the_same_with_and_without(make_relation_net, experiment, stream, monkeypatch):
    learner, rows = make_relation_net("pairs"), stream.unseen.images()
    embeddings = Embeddings.of(rows, embed_all(learner, rows, experiment.pixels))

    def found() -> list[float]:
        shape = Shape(3, 2, 2, episodes=40)
        return evaluate.episode_accuracies(learner, embeddings, stream.unseen, shape, generator("q")).tolist()

    with_table = found()
    monkeypatch.setattr(evaluate, "worthwhile", lambda *_: False)
    assert found() == with_table
