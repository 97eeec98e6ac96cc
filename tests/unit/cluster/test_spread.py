from collections.abc import Iterator

import pytest

from episodica.cluster.spread import AHEAD, OnCluster, Part, Spread
from episodica.errors import InputError
from unit.cluster.fake_ray import FakeRay


def parts(number: int, size: int = 0) -> Iterator[Part]:
    return (Part(i, (i,), size, f"part {i}") for i in range(number))


def test_results_come_in_order_and_a_bounded_number_is_ahead() -> None:
    ray = FakeRay(cpus=3)
    found = Spread(ray, lambda i: i * i, 1).results(parts(1000))
    assert [(part.what, result) for part, result in found] == [(i, i * i) for i in range(1000)]
    assert ray.most_under_way == 3 * AHEAD


def test_parts_are_taken_when_there_is_room_for_their_bytes() -> None:
    ray = FakeRay(cpus=100, store=1000)
    assert len(list(Spread(ray, abs, 1).results(parts(50, 200)))) == 50
    assert ray.most_under_way == 2, "half of the store"
    alone = FakeRay(cpus=100, store=1000)
    assert len(list(Spread(alone, abs, 1).results(parts(5, 5000)))) == 5
    assert alone.most_under_way == 1, "what is larger than the room goes alone"


def test_a_growing_cluster_gets_more() -> None:
    ray = FakeRay(cpus=1)
    found = Spread(ray, abs, 1).results(parts(100))
    for _ in range(10):
        next(found)
    assert ray.most_under_way == AHEAD
    ray.cpus = 8
    assert len(list(found)) == 90
    assert ray.most_under_way == 8 * AHEAD


def test_what_no_cluster_can_do_is_refused() -> None:
    with pytest.raises(InputError, match="1 CPU or more"):
        OnCluster(cpus=0)
    with pytest.raises(InputError, match="auto, shared, own"):
        OnCluster(disk="none")  # type: ignore[arg-type]
