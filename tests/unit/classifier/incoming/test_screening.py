"""Images that cannot be read and images that are there twice, in folders as people bring them."""

from collections import Counter

import numpy as np
import pytest
from PIL import Image

from episodica import InputError
from episodica.classifier.incoming.read import read_classes
from episodica.classifier.incoming.screening import screened


def test_a_truncated_image_is_named_and_left_out(write, tmp_path):
    broken = write("robin/1.jpg", 1)
    write("robin/2.jpg", 2)
    write("wren/3.jpg", 3)
    broken.write_bytes(broken.read_bytes()[:-20])
    found = read_classes(tmp_path)
    assert {name: len(images) for name, images in found.classes.items()} == {"robin": 1, "wren": 1}
    (left_out,) = found.left_out
    assert left_out.name == str(broken)
    assert "truncated" in left_out.reason
    with pytest.raises(InputError, match=r"1 of 3 images is left out: .*1\.jpg: .*truncated.*Repair or remove"):
        read_classes(tmp_path, strict=True)


def test_the_list_of_what_is_left_out_is_bounded(write, tmp_path):
    write("robin/good.png", 0)
    for i in range(25):
        (tmp_path / "robin" / f"{i:02}.png").write_bytes(b"no image")
    summary = read_classes(tmp_path).summary()
    assert "25 of 26 images are left out" in summary
    assert "09.png" in summary
    assert "10.png" not in summary
    assert summary.endswith("and 15 more")


def test_a_class_of_which_nothing_is_left_is_named(write, tmp_path):
    write("robin/1.png", 0)
    (tmp_path / "wren").mkdir()
    (tmp_path / "wren" / "1.png").write_bytes(b"")
    found = read_classes(tmp_path)
    assert list(found.classes) == ["robin"]
    assert 'class "wren" is left out: no image of it can be used' in found.notes
    (tmp_path / "robin" / "1.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"no image can be used: 2 of 2 images are left out: .*is empty"):
        read_classes(tmp_path)


def test_a_copy_counts_once_however_it_is_written(write, tmp_path):
    first = write("robin/1.png", 1)
    for name in ("robin/2.bmp", "robin/3.png", "robin/4.png"):
        write(name, 2 if name == "robin/4.png" else 1)
    found = read_classes(tmp_path)
    assert [path.name for path in found.classes["robin"]] == ["1.png", "4.png"]  # type: ignore[union-attr]
    assert [one.reason for one in found.left_out] == [f"is the same picture as {first}, which counts"] * 2


def test_an_image_of_two_classes_is_in_neither(write, tmp_path):
    paths = [write(name, 1) for name in ("robin/1.png", "robin/2.png", "wren/1.png")]
    write("robin/3.png", 3)
    write("wren/4.png", 4)
    found = read_classes(tmp_path)
    assert {name: len(images) for name, images in found.classes.items()} == {"robin": 1, "wren": 1}
    assert {one.name: one.reason for one in found.left_out} == {
        str(paths[0]): f'is in class "wren" too ({paths[2]})',
        str(paths[1]): f'is in class "wren" too ({paths[2]})',
        str(paths[2]): f'is in class "robin" too ({paths[0]})',
    }


def test_doubles_are_what_comparing_every_pair_finds():
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (6, 64, 64, 3), dtype=np.uint8)
    drawn = {name: [pictures[i] for i in rng.integers(0, 6, 5)] for name in "abc"}
    found = screened(drawn, lambda name, i: f"{name}{i}")
    where = Counter((name, i) for name, images in drawn.items() for i in _numbers(images, pictures))
    for name, images in found.classes.items():
        alone = {i for i in _numbers(drawn[name], pictures) if sum(n == i for _, n in where) == 1}
        assert sorted(_numbers(images, pictures)) == sorted(alone)
    assert len(found.left_out) == 15 - sum(map(len, found.classes.values()))


def _numbers(images, pictures) -> list[int]:
    return [next(n for n, picture in enumerate(pictures) if np.array_equal(picture, image)) for image in images]


def test_classes_of_very_different_size_are_named(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (63, 8, 8, 3), dtype=np.uint8)
    found = screened({"robin": list(pictures[:60]), "wren": list(pictures[60:])}, lambda name, i: f"{name} {i}")
    assert 'class "robin" has 60 images and "wren" has 3' in found.notes[0]
    assert not screened({"robin": list(pictures[:59]), "wren": list(pictures[60:])}, lambda name, i: name).notes


def test_progress_reaches_the_end():
    pictures = [Image.new("RGB", (8, 8), (i, 0, 0)) for i in range(120)]
    seen = []
    screened({"robin": pictures}, lambda name, i: f"{name} {i}", lambda *progress: seen.append(progress))
    assert seen == [("looking at images", done, 120) for done in (50, 100, 120)]
