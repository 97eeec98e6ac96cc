"""Each loss against its definition, typed out one number at a time."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.losses import cross_entropy, kl
from episodica.rng import generator

sizes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(2, 5))
seeds = st.integers(0, 999)


def scores_of(shape: tuple[int, ...], *key: int | str) -> torch.Tensor:
    return 4 * torch.randn(shape, generator=generator(*key))


def probabilities(scores: list[float]) -> list[float]:
    total = sum(math.exp(s) for s in scores)
    return [math.exp(s) / total for s in scores]


@given(sizes, seeds)
def test_cross_entropy_is_the_mean_of_minus_log_probabilities(sizes, seed):
    episodes, queries, way = sizes
    scores = scores_of((episodes, queries, way), seed)
    labels = torch.randint(way, (queries,), generator=generator(seed, "labels"))
    losses = [
        -math.log(probabilities(line)[label])
        for episode in scores.tolist()
        for line, label in zip(episode, labels.tolist(), strict=True)
    ]
    assert cross_entropy(scores, labels).item() == pytest.approx(sum(losses) / len(losses), rel=1e-5, abs=1e-6)


@given(sizes, seeds, st.sampled_from([0.0, 1e-4, 0.1]))
def test_kl_is_that_of_the_teacher_from_the_student(sizes, seed, clamp):
    teacher, student = (scores_of(sizes, seed, who) for who in ("teacher", "student"))
    losses = []
    for old, new in zip(teacher.flatten(0, 1).tolist(), student.flatten(0, 1).tolist(), strict=True):
        pairs = zip(probabilities(old), probabilities(new), strict=True)
        losses.append(sum(max(p, clamp) * math.log(max(p, clamp) / max(q, clamp)) for p, q in pairs))
    assert kl(teacher, student, clamp).item() == pytest.approx(sum(losses) / len(losses), rel=1e-4, abs=1e-6)


def test_kl_of_equal_scores_is_zero():
    scores = scores_of((2, 3, 4), "equal")
    assert kl(scores, scores).item() == 0


@pytest.mark.parametrize("clamp", [0.0, 1e-4])
def test_far_scores_give_finite_losses_and_gradients(clamp):
    student = torch.tensor([[[0.0, -1e4]]], requires_grad=True)
    teacher = torch.tensor([[[-1e4, 0.0]]])
    loss = kl(teacher, student, clamp) + cross_entropy(student, torch.tensor([1]))
    loss.backward()
    assert math.isfinite(loss.item())
    assert student.grad is not None
    assert student.grad.isfinite().all()


def test_losses_are_computed_in_single_precision():
    scores = scores_of((1, 2, 3), "half").half()
    assert kl(scores, scores).dtype == cross_entropy(scores, torch.tensor([0, 1])).dtype == torch.float32
