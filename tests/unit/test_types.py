import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.types import Embedded, Pool, Pools

rows = st.dictionaries(st.integers(0, 50), st.lists(st.integers(0, 99), max_size=5), max_size=5)


def lists(pool: Pool) -> dict[int, list[int]]:
    return {c: own.tolist() for c, own in pool.by_class().items()}


@given(rows)
def test_a_pool_gives_back_the_rows_of_its_classes(by_class):
    pool = Pool.of(by_class)
    assert lists(pool) == by_class
    assert list(pool.by_class()) == list(by_class)
    assert len(pool) == len(by_class)
    assert pool.images().tolist() == [row for own in by_class.values() for row in own]


def test_rows_are_padded_with_minus_one():
    assert Pool.of({4: [1, 2, 3], 9: [5]}).rows.tolist() == [[1, 2, 3], [5, -1, -1]]


def test_merged_pools_keep_their_order():
    merged = Pool.merged([Pool.of({4: [1], 2: [5, 6]}), Pool.of({1: [7]})])
    assert lists(merged) == {4: [1], 2: [5, 6], 1: [7]}
    assert merged.classes.tolist() == [4, 2, 1]


def test_current_classes_come_before_past_ones():
    current, past = Pool.of({3: [1, 2]}), Pool.of({0: [7]})
    assert Pools(current, None).seen is current
    assert Pools(current, past).seen.classes.tolist() == [3, 0]


def test_embeddings_are_divided_by_class_and_labelled():
    values = torch.arange(2 * 3 * 5).view(2, 3, 5, 1)
    embedded = Embedded.of(values, shots=2)
    assert embedded.support.shape == (2, 3, 2, 1)
    assert embedded.query.shape == (2, 9, 1)
    for b in range(2):
        for query, label in zip(embedded.query[b], embedded.labels, strict=True):
            assert query in values[b, label, 2:]
    assert sorted(embedded.images.flatten().tolist()) == list(range(30))
    assert embedded.images.shape == (2, 15, 1)


def test_embeddings_may_be_feature_maps():
    embedded = Embedded.of(torch.zeros(1, 2, 4, 3, 5, 5), shots=1)
    assert embedded.support.shape == (1, 2, 1, 3, 5, 5)
    assert embedded.images.shape == (1, 8, 3, 5, 5)
