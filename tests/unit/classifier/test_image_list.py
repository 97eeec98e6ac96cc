from pathlib import Path

import pytest

from episodica.classifier.image_list import image_list
from episodica.errors import InputError

NAMES = ("b/2.png", "b/1.jpg", "a.b/1.png", "a/9.png", "a/é.png", "a/Z.png", "a-/1.png", "a/deep/er/1.webp", "top.bmp")


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_a_folder_is_all_images_in_it_in_the_order_of_their_paths(tmp_path: Path) -> None:
    touch(tmp_path, *NAMES, "notes.txt", "a/raw.cr2")
    with image_list([tmp_path]) as found:
        paths = [image.path for image in found]
        assert len(found) == len(paths)
    assert paths == sorted([*(tmp_path / name for name in NAMES), *(tmp_path.rglob("*.cr2"))])


def test_places_stay_in_the_order_in_which_they_were_named(tmp_path: Path) -> None:
    touch(tmp_path, *NAMES)
    with image_list([tmp_path / "top.bmp", tmp_path / "b", tmp_path / "a" / "*.png", tmp_path / "top.bmp"]) as found:
        names = [path.relative_to(tmp_path).as_posix() for _, path in found]
    assert names == ["top.bmp", "b/1.jpg", "b/2.png", "a/9.png", "a/Z.png", "a/é.png", "top.bmp"]


def test_links_to_folders_are_not_followed_and_names_need_not_be_text(tmp_path: Path) -> None:
    touch(tmp_path / "in", "1.png")
    (tmp_path / "in" / "loop").symlink_to(tmp_path)
    odd = tmp_path / "in" / "\udcff.png"
    odd.touch()
    with image_list([tmp_path / "in"]) as found:
        assert [image.path for image in found] == [tmp_path / "in" / "1.png", odd]


def test_what_holds_no_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no image"), image_list([tmp_path]):
        pass
    with pytest.raises(InputError, match="nothing matches"), image_list([tmp_path / "*.png"]):
        pass
