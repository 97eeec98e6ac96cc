"""Neighbourhood Replay of Directions against its equations, written as loops over images."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from episodica.config.sections import TrainConfig
from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.methods.batches import draw_groups
from episodica.methods.method import Step
from episodica.methods.nrd import NRD, neighbourhood_change, neighbourhood_loss, without_diagonal
from episodica.rng import StepGenerators, generator
from episodica.types import EmbeddedBatch, Pool, Pools, Shape

LABELS = torch.tensor([0, 1, 0, 2, 1, 3])  # the last two classes have one image each
SCALE = 5.0


def random(name: str, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator("nrd", name))


def shares(directions: Tensor, i: int, scale: float = SCALE) -> dict[int, float]:
    """Of every other image in the neighbourhood of image i."""
    weights = {j: math.exp(scale * float(directions[i] @ directions[j])) for j in range(len(directions)) if j != i}
    return {j: weight / sum(weights.values()) for j, weight in weights.items()}


def slow_neighbourhood_loss(directions: Tensor) -> float:
    losses = []
    for i in range(len(directions)):
        same = [share for j, share in shares(directions, i).items() if LABELS[j] == LABELS[i]]
        if same:
            losses.append(-math.log(sum(same)))
    return sum(losses) / len(losses)


def slow_neighbourhood_change(old: Tensor, new: Tensor) -> float:
    total = 0.0
    for i in range(len(old)):
        before, now = shares(old, i), shares(new, i)
        total += sum(before[j] * math.log(before[j] / now[j]) for j in before)
    return total / len(old)


def step(learner, *, later: bool) -> Step:
    def batch(name: str) -> EmbeddedBatch:
        return EmbeddedBatch(random(name, len(LABELS), 4), (), LABELS)

    old = {"mix": batch("old")} if later else {}
    return Step(learner, {}, learner if later else None, {}, StepGenerators(0, 0, 0, 1), {"mix": batch("new")}, old)


def test_a_line_without_the_image_itself():
    assert without_diagonal(torch.arange(9).view(3, 3)).tolist() == [[1, 2], [3, 5], [6, 7]]


def test_images_of_one_class_become_neighbours():
    directions = normalize(random("new", len(LABELS), 4))
    assert neighbourhood_loss(directions, LABELS, SCALE).item() == pytest.approx(slow_neighbourhood_loss(directions))


def test_a_batch_without_two_images_of_a_class_has_no_neighbours_to_make():
    directions = normalize(random("new", 3, 4)).requires_grad_()
    loss = neighbourhood_loss(directions, torch.arange(3), SCALE)
    loss.backward()
    assert loss.item() == 0
    assert directions.grad is not None
    assert not directions.grad.any()


def test_neighbourhoods_of_the_old_model_are_kept():
    old, new = (normalize(random(name, len(LABELS), 4)) for name in ("old", "new"))
    assert neighbourhood_change(old, new, SCALE).item() == pytest.approx(slow_neighbourhood_change(old, new), rel=1e-5)
    assert neighbourhood_change(old, old, SCALE).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("later", [False, True])
def test_the_terms_are_those_of_the_equations(learner, later):
    method, now = NRD(neighbours=0.7, classify=0.4, keep=2, scale=SCALE, kept_scale=SCALE), step(learner, later=later)
    method.weight.data = random("weight", 5, 4)
    new = normalize(now.new_batches["mix"].features)
    classify = 0.0
    for direction, label in zip(new, LABELS.tolist(), strict=True):
        logits = [SCALE * float(direction @ normalize(w, dim=0)) for w in method.weight.detach()]
        classify += math.log(sum(map(math.exp, logits))) - logits[label]
    expected = {"classify": 0.4 * classify / len(LABELS), "neighbours": 0.7 * slow_neighbourhood_loss(new)}
    if later:
        expected["keep"] = 2 * slow_neighbourhood_change(normalize(now.old_batches["mix"].features), new)
    assert {name: term.item() for name, term in method.loss(now).items()} == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("turned", [0, 0.5])
@pytest.mark.parametrize("known", [0, 1])
def test_classes_without_a_weight_begin_at_their_mean_direction(pools, known, turned):
    """Past ones too, by their exemplars: where a model goes on from its embedding, no weight is left of them."""
    table = random("table", 1 + int(pools.seen.images().max()), 4)

    class Access:
        learner = None

        def embed(self, learner, rows):
            return table[rows]

    places = 4 if turned else 1
    method, before = NRD(classify=1, turned=turned), random("weight", known * places, 4)
    method.weight.data = before if known else torch.empty(0, 0)
    method.begin(Access(), pools)  # type: ignore[arg-type]
    expected = [*before]
    for rows in [*pools.past.by_class().values(), *pools.current.by_class().values()][known:]:
        total = torch.stack([table[row] / table[row].norm() for row in rows.tolist()]).sum(0)
        expected += [total / total.norm()] * places
    torch.testing.assert_close(method.weight.detach(), torch.stack(expected))


@pytest.mark.parametrize("alone", ["neighbours", "classify"])
def test_a_weight_of_zero_leaves_a_term_out(learner, alone):
    method, now = NRD(**{"neighbours": 0, "classify": 0, "keep": 0} | {alone: 1}), step(learner, later=True)
    method.weight.data = random("weight", 5, 4)
    assert set(method.loss(now)) == {alone}


def test_without_a_classifier_there_are_no_weights_to_begin_with(pools):
    method = NRD(classify=0)
    method.begin(None, pools)  # type: ignore[arg-type]
    assert method.weight.numel() == 0


def test_a_method_that_would_learn_nothing_is_refused():
    with pytest.raises(ValueError, match=r"both 0.*give one of them"):
        NRD(neighbours=0, classify=0).check(Shape(5, 1, 15), ProtoNet)


@pytest.mark.parametrize("turned", [0, 0.5])
def test_half_of_a_step_is_of_the_current_task_and_half_exemplars(pools, turned):
    shape = Shape(2, 1, 3)
    batch = NRD(group=2, turned=turned).draw(pools, shape, StepGenerators(0, 1, 0, 1))["mix"]
    places = 4 if turned else 1
    current = set(pools.current.images().tolist())
    assert [row in current for row in batch.rows.tolist()] == [False] * shape.images + [True] * shape.images
    assert all(
        (label >= places * len(pools.past)) == (row in current)
        for row, label in zip(*map(Tensor.tolist, (batch.rows, batch.labels)), strict=True)
    )


def test_without_turned_images_the_draw_is_that_of_upright_ones(pools):
    shape, rng = Shape(2, 1, 3), StepGenerators(0, 1, 0, 1)
    upright, turned = (NRD(group=2, turned=share).draw(pools, shape, rng)["mix"] for share in (0, 0.5))
    assert upright.turns is None
    assert turned.turns is not None
    assert turned.rows.tolist() == upright.rows.tolist()
    assert (turned.labels // 4).tolist() == upright.labels.tolist()
    assert (turned.labels % 4).tolist() == turned.turns.tolist()


@given(st.integers(1, 7), st.integers(1, 60), st.integers(2, 6), st.integers(0, 99))
def test_the_images_of_a_group_are_turned_alike(classes, size, group, seed):
    pool = Pool.of({i: range(100 * i, 100 * i + 20) for i in range(classes)})
    shape, rng = Shape(size, 0, 1), StepGenerators(seed, 0, 0, 1)
    batch = NRD(group=group, turned=1).draw(Pools(pool, None), shape, rng)["mix"]
    assert batch.turns is not None
    assert set(batch.turns.tolist()) <= {1, 2, 3}
    drawn: dict[int, list[int]] = {}
    for row, turn in zip(batch.rows.tolist(), batch.turns.tolist(), strict=True):
        drawn.setdefault(row // 100, []).append(turn)
    for turns in drawn.values():
        for start in range(0, len(turns), group):
            assert len(set(turns[start : start + group])) == 1


def test_half_of_the_groups_are_turned():
    pool = Pool.of({i: range(100 * i, 100 * i + 20) for i in range(50)})
    draws = [
        NRD(group=2).draw(Pools(pool, None), Shape(100, 0, 1), StepGenerators(0, 0, step, 200))["mix"].labels % 4
        for step in range(200)
    ]
    shares = torch.cat(draws).bincount() / 20_000
    assert shares.tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6], abs=0.02)


def test_the_rate_falls_to_nothing_along_a_cosine():
    method, train = NRD(lr=0.2), TrainConfig()
    assert [method.rate(step, 100, train) for step in (0, 50, 100)] == pytest.approx([0.2, 0.1, 0])


def test_learners_without_directions_are_refused():
    with pytest.raises(ValueError, match=r"directions.*relationnet compares maps"):
        NRD().check(Shape(5, 1, 15), RelationNet)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=7), st.integers(1, 40), st.integers(1, 6), st.integers(0, 99))
def test_groups_are_even_and_large_enough(counts, size, least, seed):
    pool = Pool.of({10 + i: range(100 * i, 100 * i + count) for i, count in enumerate(counts)})
    batch = draw_groups(pool, size, least, generator(seed))
    assert len(batch.rows) == size
    assert batch.labels.tolist() == [row // 100 for row in batch.rows.tolist()]
    of_each = batch.labels.bincount()
    of_each = of_each[of_each > 0]
    assert of_each.max() - of_each.min() <= 1
    assert of_each.min() >= least or len(of_each) == 1
    for label, drawn in zip(*batch.labels.unique(return_counts=True), strict=True):
        rows = batch.rows[batch.labels == label].tolist()
        assert len(set(rows)) == min(int(drawn), counts[int(label)])
