import json
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.config.sections import MemoryConfig
from episodica.data.compression import CompressedStore
from episodica.memory import SELECT, Memory
from episodica.rng import generator
from episodica.types import Pool

RULES = tuple(SELECT)
seeds = st.integers(0, 999)
EMBEDDINGS = torch.randn(400, 2, 3, generator=generator("embeddings"))


def embed(rows: torch.Tensor) -> torch.Tensor:
    return EMBEDDINGS[rows]


def tasks(sizes: list[list[int]]) -> Iterator[Pool]:
    """One pool a task with classes of these sizes; rows and classes are numbered on."""
    first = c = 0
    for counts in sizes:
        pool = {}
        for count in counts:
            pool[c] = list(range(first, first + count))
            first, c = first + count, c + 1
        yield Pool.of(pool)


def filled(sizes: list[list[int]], seed: int = 0, **config) -> Memory:
    memory = Memory(MemoryConfig(**{"select": "ntc", **config}))
    for session, pool in enumerate(tasks(sizes)):
        memory.add(pool, embed, generator(seed, session))
    return memory


def distances(points: list[list[float]]) -> list[float]:
    centre = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    return [sum((x - m) ** 2 for x, m in zip(p, centre, strict=True)) ** 0.5 for p in points]


def ranking(points: list[list[float]]) -> list[int]:
    far = distances(points)
    return sorted(range(len(points)), key=far.__getitem__)


def slow_herding(points: list[list[float]], count: int) -> list[int]:
    lengths = [sum(x * x for x in p) ** 0.5 for p in points]
    unit = [[x / n for x in p] for p, n in zip(points, lengths, strict=True)]
    mean = [sum(axis) / len(unit) for axis in zip(*unit, strict=True)]
    chosen: list[int] = []
    while len(chosen) < count:
        gaps = {}
        for i in set(range(len(unit))) - set(chosen):
            group = [unit[j] for j in [*chosen, i]]
            average = [sum(axis) / len(group) for axis in zip(*group, strict=True)]
            gaps[i] = sum((m - a) ** 2 for m, a in zip(mean, average, strict=True))
        chosen.append(min(gaps, key=gaps.__getitem__))
    return chosen


def points_of(pool: Pool) -> dict[int, list[list[float]]]:
    return {c: embed(rows).flatten(1).double().tolist() for c, rows in pool.by_class().items()}


def test_ntc_keeps_the_nearest_to_the_class_mean_in_order():
    memory, (pool,) = filled([[9, 12, 4]], per_class=5), tasks([[9, 12, 4]])
    for c, points in points_of(pool).items():
        order = ranking(points)[:5]
        assert memory.kept[c].rows == pool.by_class()[c][order].tolist()
        assert memory.kept[c].distances == pytest.approx([distances(points)[i] for i in order], rel=1e-5)


def test_herding_is_the_greedy_rule_on_normalised_features():
    memory, (pool,) = filled([[9, 12, 4]], per_class=5, select="herding"), tasks([[9, 12, 4]])
    for c, points in points_of(pool).items():
        assert memory.kept[c].rows == pool.by_class()[c][slow_herding(points, min(5, len(points)))].tolist()


@given(seeds, st.integers(2, 12), st.data())
def test_rb_takes_what_is_left_at_either_end(seed, size, data):
    count = data.draw(st.integers(1, size))
    memory, (pool,) = filled([[size]], seed, per_class=count, select="rb"), tasks([[size]])
    left = pool.rows[0][ranking(points_of(pool)[0])].tolist()
    for row in memory.kept[0].rows:
        assert row in (left[0], left[-1])
        left.remove(row)


def test_rb_tosses_a_fair_coin():
    first = [filled([[10]], seed, per_class=1, select="rb").kept[0].rows[0] for seed in range(400)]
    near = ranking(points_of(next(tasks([[10]])))[0])[0]
    assert abs(first.count(near) - 200) < 50


def test_random_choice_is_uniform(looks_uniform):
    rows = [row for seed in range(500) for row in filled([[10]], seed, per_class=3, select="random").kept[0].rows]
    assert looks_uniform(torch.bincount(torch.tensor(rows), minlength=10))


@pytest.mark.parametrize(
    ("config", "embedded"),
    [
        ({"select": "random", "per_class": 3}, False),
        ({"select": "random", "total": 9}, False),
        ({"select": "random", "per_class": 3, "drop": "farthest"}, False),
        ({"select": "random", "total": 9, "drop": "farthest"}, True),
        ({"select": "ntc", "per_class": 3}, True),
    ],
)
def test_nothing_is_embedded_for_a_memory_that_does_not_look(config, embedded):
    asked = []
    memory = Memory(MemoryConfig(**config))
    for session, pool in enumerate(tasks([[10, 10], [10, 10]])):
        memory.add(pool, lambda rows: asked.append(len(rows)) or embed(rows), generator(session))
    assert bool(asked) == embedded
    assert all((kept.distances is not None) == embedded for kept in memory.kept.values())


streams = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=4), min_size=1, max_size=4)


@given(streams, st.none() | st.integers(1, 15), st.none() | st.integers(4, 40), st.sampled_from(RULES), seeds)
def test_budgets_hold_and_exemplars_are_distinct_images_of_their_class(sizes, per_class, total, select, seed):
    if per_class is total is None:
        per_class = 20
    memory = filled(sizes, seed, per_class=per_class, total=total, select=select)
    rows = {c: set(own.tolist()) for pool in tasks(sizes) for c, own in pool.by_class().items()}
    assert memory.kept.keys() == rows.keys()
    for c, kept in memory.kept.items():
        assert len(set(kept.rows)) == len(kept.rows)
        assert kept.distances is None or len(kept.distances) == len(kept.rows)
        assert set(kept.rows) <= rows[c]
        assert len(kept.rows) <= (per_class or len(rows[c]))
        if total is None:
            assert len(kept.rows) == min(per_class or 0, len(rows[c]))
    assert len(memory) == sum(len(kept.rows) for kept in memory.kept.values())
    assert len(memory) <= (total or len(memory))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 60), st.sampled_from(["random", "farthest"]))
def test_a_total_is_used_up_and_shared_equally(classes, total, drop):
    memory = filled([[20] * n for n in classes], total=total, drop=drop)
    counts = [len(kept.rows) for kept in memory.kept.values()]
    assert sum(counts) == min(total, 20 * sum(classes))
    assert max(counts) - min(counts) <= 1
    assert memory.smallest(sum(classes)) in (min(counts), total // sum(classes))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(1, 4), st.sampled_from(RULES), seeds)
def test_compressed_exemplars_fill_the_bytes_of_plain_ones(sizes, per_class, select, seed):
    images = np.random.default_rng(seed).integers(0, 256, (sum(sizes), 8, 8, 3), np.uint8)
    store = CompressedStore(images, "jpeg", 20)
    memory = Memory(MemoryConfig(per_class=per_class, select=select, quality=20))
    (pool,) = tasks([sizes])
    memory.add(pool, embed, generator(seed), store)
    for c, rows in pool.by_class().items():
        chosen = memory.kept[c]
        kept = torch.tensor(chosen.rows)
        left = [row for row in rows.tolist() if row not in kept]
        used, budget = int(store.bytes(kept).sum()), per_class * 8 * 8 * 3
        assert used <= budget
        assert not left or used + int(store.bytes(torch.tensor(left)).max()) > budget, "another would have fitted"
        assert chosen.distances is None or len(chosen.distances) == len(kept)


def test_the_largest_class_gives_way():
    memory = filled([[2, 9], [4]], total=9)
    assert {c: len(kept.rows) for c, kept in memory.kept.items()} == {0: 2, 1: 4, 2: 3}


def test_the_farthest_goes_first():
    before, after = filled([[10, 10]], total=16), filled([[10, 10], [10, 10]], total=16, drop="farthest")
    for c in (0, 1):
        assert after.kept[c].rows == before.kept[c].rows[:4]


def test_the_random_drop_is_uniform(looks_uniform):
    gone = []
    for seed in range(400):
        memory = filled([[8], [8]], seed, total=8)
        gone += [row for row in range(8) if row not in memory.kept[0].rows]
    assert looks_uniform(torch.bincount(torch.tensor(gone), minlength=8))


def test_exemplars_are_chosen_once_and_never_again():
    first, both = filled([[9, 9]], per_class=4), filled([[9, 9], [9]], per_class=4)
    assert {c: both.kept[c] for c in first.kept} == first.kept


def test_a_memory_is_a_pool_of_its_exemplars():
    memory = filled([[3, 9], [6]], per_class=5)
    pool = memory.pool()
    assert pool is not None
    assert {c: rows.tolist() for c, rows in pool.by_class().items()} == {c: k.rows for c, k in memory.kept.items()}
    assert filled([], per_class=5).pool() is None


@given(streams, st.sampled_from(RULES), seeds)
def test_a_memory_survives_json_and_goes_on_alike(sizes, select, seed):
    (*before, last) = tasks([*sizes, [9]])
    memory, copy = (Memory(MemoryConfig(total=12, select=select)) for _ in range(2))
    for session, pool in enumerate(before):
        memory.add(pool, embed, generator(seed, session))
    copy.restore(json.loads(json.dumps(memory.to_json())))
    assert copy.kept == memory.kept
    for one in (memory, copy):
        one.add(last, embed, generator(seed, "last"))
    assert copy.kept == memory.kept


def test_a_share_is_rounded_up_and_both_budgets_bind():
    assert [Memory(MemoryConfig(total=10, select="ntc")).quota(n) for n in (1, 3, 10, 20)] == [10, 4, 1, 1]
    assert [Memory(MemoryConfig(total=10, per_class=3, select="ntc")).quota(n) for n in (1, 5)] == [3, 2]
    assert [Memory(MemoryConfig(total=10, select="ntc")).smallest(n) for n in (1, 3, 20)] == [10, 3, 0]
