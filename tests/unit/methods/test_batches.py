"""Mini-batches: what they hold, and that every draw is allowed and equally likely."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.methods.batches import (
    arrived,
    batch_steps,
    draw_balanced_batch,
    draw_batch,
    draw_of_each,
)
from episodica.methods.icarl import ICaRL
from episodica.methods.podnet import PODNet
from episodica.methods.ucir import UCIR
from episodica.rng import generator
from episodica.types import Pool, Pools, Shape

sizes = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def pool_of(counts: list[int]) -> Pool:
    """Class 10 + i has the rows 100 i, 100 i + 1, ..."""
    return Pool.of({10 + i: range(100 * i, 100 * i + count) for i, count in enumerate(counts)})


@given(sizes, st.integers(1, 60), st.integers(0, 99))
def test_a_batch_holds_different_images_with_their_places(counts, size, seed):
    batch = draw_batch(pool_of(counts), size, generator(seed))
    rows = batch.rows.tolist()
    assert len(rows) == len(set(rows)) == min(size, sum(counts))
    assert batch.labels.tolist() == [row // 100 for row in rows]
    assert all(row % 100 < counts[row // 100] for row in rows)


@given(sizes, st.integers(1, 60), st.integers(0, 99))
def test_a_balanced_batch_holds_images_with_their_places(counts, size, seed):
    batch = draw_balanced_batch(pool_of(counts), size, generator(seed))
    assert len(batch.rows) == size
    assert batch.labels.tolist() == [row // 100 for row in batch.rows.tolist()]
    assert all(row % 100 < counts[row // 100] for row in batch.rows.tolist())


def test_images_are_equally_likely_in_a_batch_and_classes_in_a_balanced_one():
    pool = pool_of([30, 10])
    plain = torch.cat([draw_batch(pool, 4, generator(seed)).labels for seed in range(2000)])
    balanced = draw_balanced_batch(pool, 8000, generator(0))
    assert plain.float().mean() == pytest.approx(0.25, abs=0.02)
    assert balanced.labels.float().mean() == pytest.approx(0.5, abs=0.02)
    first_class = balanced.rows[balanced.labels == 0]
    assert first_class.float().mean() == pytest.approx(14.5, abs=0.6)


@given(sizes, st.integers(1, 12), st.integers(0, 99))
def test_images_of_each_class_are_different_while_they_last(counts, take, seed):
    rows = draw_of_each(pool_of(counts), take, generator(seed))
    assert rows.shape == (len(counts), take)
    for i, (own, count) in enumerate(zip(rows.tolist(), counts, strict=True)):
        assert all(row // 100 == i and row % 100 < count for row in own)
        assert len(set(own)) == min(take, count)


def test_past_classes_come_first():
    current, past = pool_of([2, 2]), Pool.of({7: [5], 3: [6]})
    assert arrived(Pools(current, None)) is current
    assert arrived(Pools(current, past)).classes.tolist() == [7, 3, 10, 11]


def test_as_many_images_as_in_episodes():
    assert batch_steps(300, Shape(5, 1, 15), 128) == 188
    assert batch_steps(300, Shape(5, 5, 15, 2), 100) == 600


@pytest.mark.parametrize("method", [ICaRL(), UCIR(), PODNet()])
def test_learners_without_centroids_are_refused(method):
    method.check(Shape(5, 1, 15), ProtoNet)
    with pytest.raises(ValueError, match=r"nearest-centroid.*relationnet compares maps.*use learner.name: protonet"):
        method.check(Shape(5, 1, 15), RelationNet)
