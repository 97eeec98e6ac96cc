import numpy as np
import pytest

from episodica.data.tiered_imagenet import TieredImageNet
from episodica.errors import InputError
from unit.data.layouts import dump, nested, picture, png, published_folders, tiered

IMAGES = 3
NAMES = (*(f"train_{c}" for c in range(4)), *(f"val_{c}" for c in range(2)), *(f"test_{c}" for c in range(3)))


def load(root):
    return TieredImageNet(root=str(root)).load()


@pytest.fixture
def folder(tmp_path):
    return tiered(tmp_path / "tiered", IMAGES)


def encoded(number=0):
    return np.frombuffer(png(picture(number)), np.uint8)


def test_pickles_are_read_with_the_published_split(folder):
    arrays = load(folder)
    np.testing.assert_array_equal(arrays.images, [picture(i) for i in range(9 * IMAGES)])
    assert arrays.labels.tolist() == np.repeat(np.arange(9), IMAGES).tolist()
    assert arrays.class_names == NAMES
    assert arrays.unseen == (6, 7, 8)


def test_folders_are_a_published_split(tmp_path):
    arrays = load(published_folders(tmp_path, IMAGES))
    assert (arrays.class_names, arrays.unseen) == (NAMES, (6, 7, 8))


def test_columns_of_bytes_and_labels_in_arrays_are_read_too(folder):
    """As OpenCV returned them, and as NumPy pickles them."""
    before = load(folder)
    dump([encoded(18 + i)[:, None] for i in range(9)], folder / "test_images_png.pkl")
    labels = {b"label_specific": np.repeat(np.arange(3), 3), b"label_specific_str": np.array([b"x", b"y", b"x"])}
    dump(labels, folder / "test_labels.pkl")
    arrays = load(folder)
    np.testing.assert_array_equal(arrays.images, before.images)
    assert arrays.class_names == (*NAMES[:6], "x", "y", "x (8)")


LABELS = {"label_specific": [0, 1], "label_specific_str": ["a", "b"]}
BROKEN = {
    "no list": ("images_png", {"a": 1}, "is not a list of PNG-encoded byte arrays"),
    "other things": ("images_png", ["a", "b"], "is not a list of PNG-encoded byte arrays"),
    "an empty image": ("images_png", [encoded(), np.zeros(0, np.uint8)] * 3, "image 13 (val_0): is empty"),
    "a torn image": ("images_png", [encoded(), encoded()[:90]] * 3, "image 13 (val_0): is damaged"),
    "no image": ("images_png", [encoded(), np.zeros(90, np.uint8)] * 3, "is not an image of a known kind"),
    "too few images": ("images_png", [encoded()], "6 labels of 2 classes for 1 images, and 2 names"),
    "no labels": ("labels", {"label_specific_str": ["a"]}, "needs label_specific and label_specific_str"),
    "no dict": ("labels", [1], "is not a dict with names as keys"),
    "too few labels": ("labels", LABELS, "2 labels of 2 classes for 6 images"),
    "a label too far": ("labels", LABELS | {"label_specific": [0, 1, 2] * 2}, "6 labels of 3 classes for 6 images"),
    "a negative label": ("labels", LABELS | {"label_specific": [0, 1, -1] * 2}, "6 labels of 3 classes"),
    "labels without end": ("labels", LABELS | {"label_specific": nested(60)}, "is not a flat list of whole numbers"),
    "names without end": ("labels", LABELS | {"label_specific_str": nested(60)}, "is not a flat list of names"),
}


@pytest.mark.parametrize(("file", "value", "message"), BROKEN.values(), ids=BROKEN)
def test_a_wrong_file_is_refused_by_name(file, value, message, folder, own_cache):
    dump(value, folder / f"val_{file}.pkl")
    with pytest.raises(InputError) as refusal:
        load(folder)
    assert message in str(refusal.value)
    assert not list(own_cache.rglob("*.npy"))


def test_an_empty_part_is_refused(folder):
    dump([], folder / "test_images_png.pkl")
    dump({"label_specific": [], "label_specific_str": []}, folder / "test_labels.pkl")
    with pytest.raises(InputError, match="0 labels of 0 classes for 0 images"):
        load(folder)
