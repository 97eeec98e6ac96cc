import numpy as np
import pytest

from episodica import InputError
from episodica.classifier.picture_input import usable

PICTURES = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)


def test_what_is_left_out_is_a_warning_that_names_it(tmp_path):
    (tmp_path / "bad.jpg").write_bytes(b"no image")
    images = [PICTURES[0], tmp_path / "bad.jpg", PICTURES[1], PICTURES[2], b"no image", PICTURES[1]]
    with pytest.warns(
        UserWarning, match=r"3 of 6 images are left out: .*bad\.jpg: is not an image.*image 4: is not"
    ) as said:
        found = usable(images, np.array(list("aabbbb")))
    assert {name: len(images) for name, images in found.items()} == {"a": 1, "b": 2}
    assert "image 5: is the same picture as image 2, which counts" in str(said[0].message)


def test_nothing_to_say_is_no_warning():
    assert {name: len(images) for name, images in usable(PICTURES, np.array([1, 1, 2, 2])).items()} == {"1": 2, "2": 2}


def test_an_array_that_is_no_picture_is_a_mistake_and_not_left_out():
    with pytest.raises(InputError, match=r"image 1: is an array int64 \[8\]"):
        usable([PICTURES[0], np.arange(8)], np.array([1, 2]))
