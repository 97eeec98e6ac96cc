"""Equations 1-3, one number at a time."""

import pytest
import torch

from episodica.rng import generator
from episodica.types import Embedded


@pytest.fixture
def embedded() -> Embedded:
    return Embedded.of(3 * torch.randn(2, 3, 7, 4, generator=generator("embedded")), shots=5)


def test_a_prototype_is_the_mean_of_its_support(learner, embedded):
    prototypes = learner.prototypes(embedded.support)
    for b in range(2):
        for n in range(3):
            for d in range(4):
                expected = sum(embedded.support[b, n, k, d].item() for k in range(5)) / 5
                assert prototypes[b, n, d].item() == pytest.approx(expected, abs=1e-6)


def test_a_score_is_minus_the_squared_distance(learner, embedded):
    prototypes = learner.prototypes(embedded.support)
    scores = learner.scores(prototypes, embedded.query)
    assert scores.shape == (2, 6, 3)
    for b in range(2):
        for m in range(6):
            for n in range(3):
                query, centre = embedded.query[b, m].tolist(), prototypes[b, n].tolist()
                expected = -sum((q - c) ** 2 for q, c in zip(query, centre, strict=True))
                assert scores[b, m, n].item() == pytest.approx(expected, rel=1e-5, abs=1e-4)


def test_queries_can_be_scored_against_given_prototypes(learner, embedded):
    prototypes = learner.prototypes(embedded.support)
    swapped = learner.scores(prototypes.flip(0), embedded.query)
    torch.testing.assert_close(swapped[0], learner.scores(prototypes[1:], embedded.query[:1])[0])


def test_classify_scores_queries_against_their_own_support(learner, embedded):
    expected = learner.scores(learner.prototypes(embedded.support), embedded.query)
    assert torch.equal(learner.classify(embedded), expected)


def test_scores_are_single_precision_whatever_the_embedding(learner, embedded):
    half = Embedded(embedded.support.bfloat16(), embedded.query.bfloat16())
    whole = learner.classify(Embedded(half.support.float(), half.query.float()))
    assert torch.equal(learner.classify(half), whole)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(learner.classify(half), whole)


def test_distillation_is_not_symmetric_and_zero_for_equal_scores(learner, embedded):
    scores = learner.classify(embedded)
    other = scores.roll(1, dims=-1)
    assert learner.distill(scores, scores).item() == pytest.approx(0, abs=1e-6)
    assert learner.distill(scores, other).item() != pytest.approx(learner.distill(other, scores).item())


def test_only_the_embedding_is_learned(learner):
    assert {name.split(".")[0] for name, _ in learner.named_parameters()} == {"backbone"}
