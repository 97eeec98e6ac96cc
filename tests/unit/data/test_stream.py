import pytest

from episodica.data.stream import TaskStream
from episodica.errors import InputError
from episodica.types import Pool, Shape


def rows_of(pool: Pool) -> dict[int, list[int]]:
    return {c: rows.tolist() for c, rows in pool.by_class().items()}


def test_a_stream_holds_the_rows_of_its_split(split):
    stream = TaskStream.of(split)
    assert [rows_of(pool) for pool in stream.train] == list(split.train)
    assert [rows_of(pool) for pool in stream.test] == list(split.test)
    assert rows_of(stream.unseen) == split.unseen
    assert stream.lengths == (1, 1, 1)


def test_merging_joins_training_and_leaves_the_examination_alone(stream):
    merged = stream.merged()
    (pool,) = merged.train
    assert rows_of(pool) == {c: rows for part in stream.train for c, rows in rows_of(part).items()}
    assert merged.lengths == (3,)
    assert merged.test is stream.test
    assert merged.unseen is stream.unseen


def test_a_stream_can_end_early_with_what_is_examined_of_it(stream):
    first = stream.first(2)
    assert (first.train, first.test, first.lengths) == (stream.train[:2], stream.test[:2], (1, 1))
    assert first.unseen is stream.unseen
    assert first.merged().lengths == (2,)
    assert first.merged().seen(0) == [0, 1]


def test_a_task_is_seen_after_its_session(stream):
    assert [stream.seen(session) for session in range(3)] == [[0], [0, 1], [0, 1, 2]]
    assert stream.merged().seen(0) == [0, 1, 2]


@pytest.mark.parametrize(("shots", "what"), [((1, 3), "has 3 test images"), ((5,), "test images")])
def test_episodes_that_a_class_cannot_fill_are_refused(stream, shots, what):
    with pytest.raises(InputError, match=rf"{max(shots)}-shot episodes need at least {max(shots) + 1} .*({what})"):
        stream.check(Shape(5, 1, 15), [Shape(5, k, 15) for k in shots])


def test_episodes_that_every_class_can_fill_are_accepted(stream):
    stream.check(Shape(5, 4, 15), [Shape(5, 1, 15), Shape(2, 2, 1)])
