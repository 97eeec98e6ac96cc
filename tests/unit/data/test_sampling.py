"""Rows are numbered so that row // 100 is the class."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.data.sampling import choose, choose_mixed, draw_episodes, effective_way
from episodica.errors import InputError
from episodica.rng import generator
from episodica.types import Pool, Shape

shapes = st.builds(Shape, st.integers(2, 6), st.integers(1, 5), st.integers(1, 6), st.integers(1, 4))
seeds = st.integers(0, 999)


def pool_of(*counts: int) -> Pool:
    return Pool.of({7 + i: [100 * (7 + i) + n for n in range(count)] for i, count in enumerate(counts)})


@given(shapes, st.lists(st.integers(0, 9), min_size=2, max_size=9), seeds)
def test_support_and_queries_are_disjoint_images_of_different_classes(shape, spare, seed):
    pool = pool_of(*(shape.shots + 1 + n for n in spare))
    drawn = draw_episodes(pool, shape, generator(seed))
    way = min(shape.way, len(pool))
    assert drawn.rows.shape == (shape.episodes, way, shape.shots + shape.queries)
    assert drawn.shots == shape.shots
    owned = pool.by_class()
    for episode in drawn.rows.tolist():
        assert len({rows[0] // 100 for rows in episode}) == way
        for rows in episode:
            assert {row // 100 for row in rows} == {rows[0] // 100}
            own = owned[rows[0] // 100].tolist()
            support, query = rows[: shape.shots], rows[shape.shots :]
            assert set(rows) <= set(own)
            assert len(set(support)) == shape.shots
            assert not set(support) & set(query)
            repeats = [query.count(row) for row in set(own) - set(support)]
            assert max(repeats) - min(repeats) <= 1, "queries repeat only when all others had their turn"


@pytest.mark.parametrize("shots", [1, 5])
def test_a_class_that_leaves_no_query_is_refused(shots):
    with pytest.raises(InputError, match=rf"at least {shots + 1} images of a class and one has {shots}: lower shape"):
        draw_episodes(pool_of(9, shots), Shape(2, shots, 3), generator(0))


def test_classes_and_images_are_uniform(looks_uniform):
    pool = pool_of(4, 6, 6, 9, 5)
    drawn = draw_episodes(pool, Shape(3, 1, 2, episodes=6000), generator(0))
    assert looks_uniform(torch.bincount(drawn.rows[:, :, 0].flatten() // 100)[7:])
    for c, rows in pool.by_class().items():
        of_class = drawn.rows[drawn.rows[..., 0] // 100 == c]
        for position in of_class.T:
            counts = torch.bincount(position - 100 * c, minlength=len(rows))
            assert looks_uniform(counts)


def test_the_draw_depends_on_its_generator_alone():
    pool, shape = pool_of(9, 9, 9, 9), Shape(3, 1, 3, 2)
    first, again, other = (draw_episodes(pool, shape, generator(seed)).rows for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_way_is_what_there_is_but_at_least_two():
    assert effective_way(9, 5) == 5
    assert effective_way(3, 5) == 3
    with pytest.raises(InputError, match="at least 2 classes and there is 1: use fewer tasks"):
        effective_way(1, 5)


@given(
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))), st.integers(1, 5), seeds, st.data()
)
def test_avoided_numbers_are_taken_only_when_the_others_run_out(sizes, times, seed, data):
    available, take = sizes
    marks = st.lists(st.booleans(), min_size=available, max_size=available)
    avoid = torch.tensor(data.draw(st.lists(marks, min_size=times, max_size=times)))
    for numbers, avoided in zip(choose(available, take, times, generator(seed), avoid).tolist(), avoid, strict=True):
        assert len(set(numbers)) == take
        assert set(numbers) <= set(range(available))
        free = available - int(avoided.sum())
        assert sum(bool(avoided[n]) for n in numbers) == max(0, take - free)


def test_choice_is_uniform_with_and_without_avoided_numbers(looks_uniform):
    assert looks_uniform(torch.bincount(choose(7, 3, 5000, generator(0)).flatten()))
    avoid = torch.tensor([True, False, True, False, True]).expand(5000, 5)
    counts = torch.bincount(choose(5, 3, 5000, generator(1), avoid).flatten())
    assert counts[[1, 3]].tolist() == [5000, 5000]
    assert looks_uniform(counts[[0, 2, 4]])


@given(st.integers(0, 6), st.integers(1, 8), st.integers(2, 6), st.data(), seeds)
def test_mixed_choice_has_the_number_of_past_classes_asked_for(current, past, way, data, seed):
    way = min(way, current + past)
    asked = data.draw(st.lists(st.integers(0, way), min_size=1, max_size=5))
    chosen = choose_mixed(current, past, torch.tensor(asked), way, generator(seed))
    assert chosen.shape == (len(asked), way)
    for positions, n_past in zip(chosen.tolist(), asked, strict=True):
        assert len(set(positions)) == way
        assert set(positions) <= set(range(current + past))
        assert sum(p >= current for p in positions) == max(min(n_past, past), way - current)


def test_mixed_choice_is_uniform_on_both_sides(looks_uniform):
    counts = torch.bincount(choose_mixed(6, 4, torch.full((5000,), 2), 5, generator(0)).flatten())
    assert looks_uniform(counts[:6])
    assert looks_uniform(counts[6:])
