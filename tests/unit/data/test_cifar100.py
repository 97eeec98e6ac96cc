import numpy as np
import pytest

from episodica.config import resolve
from episodica.config.flat import nest
from episodica.data.cifar100 import CIFAR100
from episodica.engine.experiment import split_of
from episodica.errors import InputError
from unit.data.layouts import cifar, dump, nested, packed, picture

CLASSES, TRAIN, TEST = 6, 3, 2


@pytest.fixture
def folder(tmp_path):
    return cifar(tmp_path / "cifar-100-python", CLASSES, TRAIN, TEST)


def load(root, **fields):
    return CIFAR100(root=str(root), **fields).load()


def record(images=2, labels=None):
    return {
        b"data": np.zeros((images, 3072), np.uint8),
        b"fine_labels": labels or [i % CLASSES for i in range(images)],
    }


def test_images_are_those_of_train_and_then_of_test_in_file_order(folder):
    arrays = load(folder)
    n = CLASSES * (TRAIN + TEST)
    np.testing.assert_array_equal(arrays.images, [picture(i, 32) for i in range(n)])
    assert arrays.labels.tolist() == [i % CLASSES for i in range(CLASSES * TRAIN)] + [
        i % CLASSES for i in range(CLASSES * TEST)
    ]
    assert arrays.class_names == tuple(f"class{c}" for c in range(CLASSES))
    assert arrays.unseen is None


def test_the_archive_is_the_same_set_as_the_folder(folder, tmp_path):
    archive = packed(folder, tmp_path / "elsewhere" / "cifar-100-python.tar.gz")
    fingerprints = {load(root).fingerprint for root in (folder, tmp_path, archive, archive.parent)}
    assert len(fingerprints) == 1


def test_natural_order_is_the_released_split(tmp_path):
    """Classes 0-79 in label order; the first images of a class in train + test file order are its test images."""
    arrays = load(cifar(tmp_path / "cifar", 100, 1, 3))
    config = resolve(
        nest({"data.name": "cifar100", "stream.order": "natural", "stream.tasks": 16, "stream.test_per_class": 2})
    )
    split = split_of(config, CIFAR100(), arrays)
    assert [c for task in split.train for c in task] == list(range(80))
    assert list(split.unseen) == list(range(80, 100))
    assert [task[c] for task in split.test for c in task] == [[c, 100 + c] for c in range(80)]
    assert [task[c] for task in split.train for c in task] == [[200 + c, 300 + c] for c in range(80)]
    assert split.unseen[99] == [99, 199, 299, 399]


def test_the_protocol_takes_100_test_images_of_80_classes():
    counts = np.full(100, 600)
    assert (CIFAR100().test_per_class(counts), CIFAR100().unseen_classes(100)) == (100, 20)


BROKEN = {
    "a dict of something else": ("train", {b"other": 1}, "it has no entry data"),
    "no dict": ("train", [1, 2], "is not a dict with names as keys"),
    "no labels": ("test", {b"data": np.zeros((2, 3072), np.uint8)}, "it has no entry fine_labels"),
    "no names": ("meta", {b"coarse_label_names": []}, "it has no entry fine_label_names"),
    "fewer labels than images": ("train", record() | {b"fine_labels": [0]}, "not a byte array of 1 images"),
    "other pixels": ("train", record() | {b"data": np.zeros((2, 3072), np.int64)}, "not a byte array of 2 images"),
    "another shape": ("train", record() | {b"data": np.zeros((2, 32, 32, 3), np.uint8)}, "not a byte array"),
    "no array": ("train", record() | {b"data": [0, 1]}, "not a byte array of 2 images"),
    "a label too large": ("train", record(2, [0, CLASSES]), f"from 0 to {CLASSES}, but meta names {CLASSES} classes"),
    "a negative label": ("train", record(2, [0, -1]), "from -1 to"),
    "no classes": ("meta", {b"fine_label_names": []}, "meta names 0 classes"),
    "a class without images": ("meta", {b"fine_label_names": [b"x"] * 7}, "labels of 6 classes from 0 to 5, but meta"),
    "labels that are text": ("train", record(2, [b"cat", b"dog"]), "fine_labels is not a flat list of whole numbers"),
    "labels in lists": ("train", record(2, [[0], [1]]), "fine_labels is not a flat list of whole numbers"),
    "labels without end": ("train", record(2, nested(60)), "fine_labels is not a flat list of whole numbers"),
    "labels beyond 64 bits": ("train", record(2, [0, 2**80]), "fine_labels is not a flat list of whole numbers"),
    "names without end": ("meta", {b"fine_label_names": nested(60)}, "fine_label_names is not a flat list of names"),
    "names that are numbers": ("meta", {b"fine_label_names": list(range(6))}, "is not a flat list of names"),
}


@pytest.mark.parametrize(("file", "value", "message"), BROKEN.values(), ids=BROKEN)
def test_a_wrong_file_is_refused_by_name(file, value, message, folder, own_cache):
    dump(value, folder / file)
    with pytest.raises(InputError, match="cifar-100-python") as refusal:
        load(folder)
    assert message in str(refusal.value)
    assert not list(own_cache.rglob("*.npy"))


def test_a_pickle_that_calls_something_is_refused(folder, tmp_path):
    (folder / "test").write_bytes(b"cposix\nsystem\n(S'touch /tmp/never'\ntR.")
    with pytest.raises(InputError, match=r"test refers to 'posix\.system'"):
        load(folder)


def test_a_torn_file_is_refused(folder):
    whole = (folder / "train").read_bytes()
    (folder / "train").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="train breaks off"):
        load(folder)
