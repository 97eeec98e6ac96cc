import pytest

from episodica import InputError
from episodica.classifier.incoming.incoming import Incoming
from episodica.classifier.incoming.read import read_classes


def sizes(found: Incoming) -> dict[str, int]:
    return {name: len(images) for name, images in found.classes.items()}


def fill(write, *names: str, suffix: str = ".png") -> None:
    for i, name in enumerate(names):
        write(name + suffix, i)


def test_a_sub_folder_is_a_class_with_all_that_lies_deeper(write, tmp_path):
    fill(write, "robin/1", "robin/2020/2", "wren/1", ".trash/a", "robin/.thumbs/9", "__MACOSX/robin/1")
    found = read_classes(tmp_path)
    assert sizes(found) == {"robin": 2, "wren": 1}
    assert (found.left_out, found.notes) == ((), ())


@pytest.mark.parametrize("parts", [("train", "val"), ("train", "val", "test"), ("Training", "Validation"), ("train",)])
def test_the_parts_of_a_collection_are_put_together(write, tmp_path, parts):
    fill(write, *(f"{part}/{name}/{part}" for part in parts for name in ("robin", "wren")))
    found = read_classes(tmp_path)
    assert sizes(found) == dict.fromkeys(("robin", "wren"), len(parts))
    assert f"is divided into {', '.join(sorted(parts))}" in found.notes[0]


def test_a_train_may_be_a_class_among_others(write, tmp_path):
    fill(write, "bus/1", "train/1", "train/2")
    assert sizes(read_classes(tmp_path)) == {"bus": 1, "train": 2}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ("train/robin_1", "val/robin_2"),
            "train looks like a part of a collection and has images that are of no class",
        ),
        (
            ("train/robin/1", "val/robin/2", "more/1"),
            "train, val, which look like parts of one collection, beside more",
        ),
        (("birds/robin/1", "birds/wren/2"), r"name .*birds if those are the classes"),
        (("IMG_2041", "IMG_2042", "20240101_101010"), "has no sub-folder with images"),
        ((), "has no sub-folder with images.*found there: nothing"),
    ],
)
def test_what_is_more_likely_a_mistake_is_refused(write, tmp_path, names, message):
    fill(write, *names)
    with pytest.raises(InputError, match=message):
        read_classes(tmp_path)


def test_without_sub_folders_the_class_stands_before_the_number(write, tmp_path):
    fill(write, "robin_01", "robin_02", "house sparrow (2)", "wren-2024-03", "owl7", "holiday", "IMG_2041")
    found = read_classes(tmp_path)
    assert sizes(found) == {"robin": 2, "house sparrow": 1, "wren": 1, "owl": 1}
    assert "the classes are those in the names of the files (house sparrow, owl, robin, wren)" in found.notes[0]
    assert [one.reason for one in found.left_out] == ["is in no folder of a class and has no class in its name"] * 2


def test_images_beside_the_folders_of_classes_are_named(write, tmp_path):
    fill(write, "robin/1", "wren/1", "robin_2")
    found = read_classes(tmp_path)
    assert sizes(found) == {"robin": 1, "wren": 1}
    assert [str(one) for one in found.left_out] == [
        f"{tmp_path / 'robin_2.png'}: lies beside the folders of the classes"
    ]


def test_images_of_kinds_that_are_not_read_are_named(write, tmp_path):
    fill(write, "robin/1", "wren/1")
    for name in ("a.CR2", "b.svg", "notes.txt", ".hidden.nef"):
        (tmp_path / "robin" / name).write_bytes(b"any")
    found = read_classes(tmp_path)
    assert [one.name for one in found.left_out] == [str(tmp_path / "robin" / name) for name in ("a.CR2", "b.svg")]
    assert found.left_out[0].reason == ".cr2 files are not read; save it as JPEG"
    with pytest.raises(InputError, match=r"2 of 4 images are left out: .*a\.CR2.*Repair or remove"):
        read_classes(tmp_path, strict=True)
