"""What is measured, and on which classes."""

import pytest
import torch

from episodica.classifier.measure import Evidence, measure
from episodica.classifier.state import Measured
from episodica.classifier.trained_recogniser import KnownClass, TrainedRecogniser
from episodica.config.sections import AugmentConfig
from episodica.learners.learner import Learner
from episodica.rng import generator


def measured(learner: Learner, held_out: list[int], unseen: int) -> Measured:
    """Of classes that are learned, each with so many held-out images, and of some that are unseen."""
    kinds = ["learned"] * len(held_out) + ["unseen"] * unseen
    g, evidence = generator("evidence"), []
    for i, (kind, count) in enumerate(zip(kinds, [*held_out, *[2] * unseen], strict=True)):
        session = 1 if kind == "learned" else None
        vectors = torch.randn(3 + count, 4, generator=g)
        evidence.append(Evidence(str(i), kind, session, vectors[:3], vectors[3:]))
    known = tuple(KnownClass(one.name, one.support.mean(0), 3, one.kind == "learned") for one in evidence)
    return measure(TrainedRecogniser(learner, 16, AugmentConfig(), known), evidence, [])[0]


@pytest.mark.parametrize(
    ("held_out", "unseen", "way", "unseen_way"),
    [([2, 2, 0, 0, 0], 3, 2, 3), ([1] * 8, 8, 5, 5), ([2, 0, 0], 0, 0, 0), ([0, 0], 1, 0, 0)],
)
def test_the_way_is_that_of_the_questions_asked(learner, held_out, unseen, way, unseen_way):
    found = measured(learner, held_out, unseen)
    assert (found.way, found.unseen_way) == (way, unseen_way)
    assert (found.few_shot is None, found.unseen is None) == (way == 0, unseen_way == 0)


def test_accuracy_is_that_among_all_known_classes_unseen_ones_included(learner):
    points = torch.eye(4) * 10
    kinds = ["learned", "learned", "unseen", "remembered"]
    asked = [points[:1], points[3:], points[2:3], points[:0]]  # the second is taken for the remembered class
    evidence = [
        Evidence(str(i), kind, 1 if kind == "learned" else None, points[i : i + 1], asked[i])
        for i, kind in enumerate(kinds)
    ]
    known = tuple(KnownClass(one.name, one.support[0], 1, one.kind == "learned") for one in evidence)
    found = measure(TrainedRecogniser(learner, 16, AugmentConfig(), known), evidence, [])[0]
    assert (found.images, found.known) == (3, 4)
    assert found.accuracy == pytest.approx(2 / 3)
