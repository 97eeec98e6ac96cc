import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.data.splits import make_split
from episodica.errors import InputError

LABELS = np.array([2, 0, 1, 3, 4, 4, 3, 1, 0, 2, 2, 4, 3, 1, 0, 0, 1, 2, 3, 4])


def small_split(**changes):
    asked = {"tasks": 2, "order": "seeded", "seed": 0, "test_per_class": 1, "unseen": 1, "fingerprint": "f"}
    return make_split(LABELS, **{**asked, **changes})


@st.composite
def asked_splits(draw):
    tasks, unseen, test = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    classes = unseen + 2 * tasks + draw(st.integers(0, 5))
    per_class = [test + draw(st.integers(2, 5)) for _ in range(classes)]
    labels = draw(st.permutations([c for c, count in enumerate(per_class) for _ in range(count)]))
    order, seed = draw(st.sampled_from(["seeded", "natural"])), draw(st.integers(0, 99))
    fields = {"tasks": tasks, "order": order, "seed": seed, "test_per_class": test, "unseen": unseen}
    return np.array(labels), fields


@given(asked_splits())
def test_a_split_is_disjoint_and_complete(asked):
    labels, fields = asked
    split = make_split(labels, **fields)
    parts = [*split.train, *split.test, split.unseen]
    rows = [row for part in parts for own in part.values() for row in own]
    assert sorted(rows) == list(range(len(labels)))
    assert all(labels[row] == c for part in parts for c, own in part.items() for row in own)
    assert all(len(own) == fields["test_per_class"] for part in split.test for own in part.values())
    assert [list(part) for part in split.train] == [list(part) for part in split.test]
    classes = [c for part in (*split.train, split.unseen) for c in part]
    assert sorted(classes) == list(range(labels.max() + 1))
    sizes = [len(part) for part in split.train]
    assert len(sizes) == fields["tasks"]
    assert max(sizes) - min(sizes) <= 1
    assert len(split.unseen) == fields["unseen"]


@given(asked_splits(), st.integers(2, 4))
def test_validation_classes_come_from_the_end_of_the_stream_and_leave_the_unseen_alone(asked, validation):
    labels, fields = asked
    whole = make_split(labels, **fields | {"tasks": 1})
    stream = list(whole.train[0])
    if len(stream) - validation < 2:
        with pytest.raises(InputError, match="for validation leave"):
            make_split(labels, **fields | {"tasks": 1}, validation=validation)
        return
    split = make_split(labels, **fields | {"tasks": 1}, validation=validation)
    assert list(split.train[0]) == stream[:-validation]
    assert list(split.unseen) == stream[-validation:]
    assert not set(split.unseen) & set(whole.unseen)


@given(asked_splits())
def test_a_split_is_reproducible_and_its_hash_says_so(asked):
    labels, fields = asked
    first, again = make_split(labels, **fields), make_split(labels, **fields)
    assert first == again
    assert first.hash == again.hash


def test_natural_order_takes_labels_and_files_as_they_come():
    split = small_split(order="natural", test_per_class=2)
    assert split.test == ({0: [1, 8], 1: [2, 7]}, {2: [0, 9], 3: [3, 6]})
    assert split.train == ({0: [14, 15], 1: [13, 16]}, {2: [10, 17], 3: [12, 18]})
    assert split.unseen == {4: [4, 5, 11, 19]}


def test_another_seed_gives_another_order_and_other_test_images():
    labels = np.repeat(np.arange(20), 10)
    one, two = (make_split(labels, tasks=4, order="seeded", seed=s, test_per_class=2, unseen=4) for s in (0, 1))
    assert [list(part) for part in one.train] != [list(part) for part in two.train]
    images = [{c: own for part in split.test for c, own in part.items()} for split in (one, two)]
    assert any(images[0][c] != images[1][c] for c in images[0].keys() & images[1].keys())


@pytest.mark.parametrize("change", [{"seed": 1}, {"order": "natural"}, {"tasks": 1}, {"fingerprint": "g"}])
def test_the_hash_depends_on_rows_and_images(change):
    assert small_split(**change).hash != small_split().hash


def test_the_hash_of_a_known_split_does_not_change():
    assert small_split(order="natural").hash == "200967a8e635869330aea32764b9370b"
    assert small_split().hash == "21df140b64db9130a1b44a121081a02e"


def test_a_written_split_holds_its_rows_and_its_hash():
    split = small_split()
    written = json.loads(split.to_json([f"class {c}" for c in range(12)]))
    assert (written["hash"], written["class_names"][3]) == (split.hash, "class 3")
    assert [{int(c): rows for c, rows in part.items()} for part in written["train"]] == list(split.train)


def test_grouped_classes_arrive_together():
    groups = (0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2)
    labels = np.repeat(np.arange(12), 3)
    asked = {"tasks": 4, "test_per_class": 1, "unseen": 2, "groups": groups}
    splits = [make_split(labels, order="grouped", seed=seed, **asked) for seed in range(5)]
    arrivals = [[groups[c] for part in split.train for c in part] for split in splits]
    for arrival in arrivals:
        changes = sum(a != b for a, b in pairwise(arrival))
        assert changes == len(set(arrival)) - 1
    assert len({tuple(dict.fromkeys(arrival)) for arrival in arrivals}) > 1


@pytest.mark.parametrize("order", ["seeded", "natural"])
@pytest.mark.parametrize("seed", range(3))
def test_published_unseen_classes_stay_whatever_order_and_seed(order, seed):
    split = small_split(order=order, seed=seed, unseen=(3, 1), tasks=1)
    assert list(split.unseen) == [1, 3]
    assert sorted(split.train[0]) == [0, 2, 4]


def test_classes_with_too_few_training_images_are_called_by_their_names():
    with pytest.raises(InputError, match=r"of 4 classes: a \(4\), b \(4\), c \(4\), d \(4\); use a smaller number"):
        small_split(order="natural", test_per_class=4, names="abcde")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": 3}, r"stream\.tasks = 3: 5 classes less 1 unseen ones leave 4, .* use at most 2 tasks"),
        ({"unseen": 5}, r"stream\.tasks = 2: .* leave 0, .* fewer stream\.unseen_classes"),
        ({"test_per_class": 3}, r"test_per_class = 3 leaves fewer than 2 training images of 4 classes: \d \(4\), "),
        ({"order": "grouped"}, r"stream\.order = grouped: this data set has no groups"),
    ],
)
def test_what_the_data_cannot_give_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        small_split(**changes)
