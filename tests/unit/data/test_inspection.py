import shutil

import numpy as np
import pytest
from PIL import Image

from episodica.data import dataset as dataset_module
from episodica.data import inspection
from episodica.data.archive import unpack
from episodica.data.cifar100 import CIFAR100
from episodica.data.dataset import silent
from episodica.data.glyphs import Glyphs
from episodica.data.image_folder import Folder
from episodica.data.inspection import contact_sheets, describe_split, inspect
from episodica.data.mini_imagenet import MiniImageNet
from episodica.data.splits import make_split
from episodica.errors import InputError
from unit.data.layouts import cifar, class_folders, mini_tables, packed, picture, write_png

CLASSES = ("ant", "bee", "cat", "dog")


@pytest.fixture
def folder(tmp_path):
    return class_folders(tmp_path / "mine", CLASSES, 3)


def check(folder):
    return inspect(Folder(root=str(folder)), silent)[0]


def test_a_sound_set_is_counted(folder, own_cache):
    class_folders(folder, ["eel"], 5, 9000)
    found = check(folder)
    assert (found.dataset, found.classes, found.images) == ("folder", 5, 17)
    assert found.class_sizes == dict.fromkeys(CLASSES, 3) | {"eel": 5}
    assert (found.unreadable, found.duplicates, found.remarks, found.sound) == ([], [], [], True)
    assert not own_cache.exists()


def test_every_unreadable_image_is_listed(folder):
    for name in ("ant/0.png", "dog/2.png"):
        (folder / name).write_bytes(b"nonsense")
    found = check(folder)
    assert [line.partition(": ")[0] for line in found.unreadable] == [f"{folder}/ant/0.png", f"{folder}/dog/2.png"]
    assert not found.sound
    assert found.to_json()["sound"] is False


def test_equal_pixels_are_duplicates_whatever_the_file(folder):
    write_png(folder / "bee" / "again.png", picture(0, 20))
    Image.fromarray(picture(0, 20)).save(folder / "cat" / "again.bmp")
    names = [str(folder / name) for name in ("ant/0.png", "bee/again.png", "cat/again.bmp")]
    assert check(folder).duplicates == [names]


def test_images_without_a_file_have_a_number_and_a_class(tmp_path):
    folder = cifar(tmp_path / "cifar", 4, 1, 1)
    shutil.copy(folder / "train", folder / "test")
    found, _ = inspect(CIFAR100(root=str(folder)), silent)
    assert found.duplicates == [[f"image {i} (class{i})", f"image {i + 4} (class{i})"] for i in range(4)]


def test_a_part_of_an_official_set_is_remarked(tmp_path):
    found, _ = inspect(MiniImageNet(root=str(mini_tables(tmp_path / "mini", 2))), silent)
    assert found.remarks == ["not the whole set: the official one has 100 classes and 60000 images"]


def test_a_whole_official_set_is_remarked(tmp_path, monkeypatch):
    monkeypatch.setattr(MiniImageNet, "official", (9, 18))
    found, _ = inspect(MiniImageNet(root=str(mini_tables(tmp_path / "mini", 2))), silent)
    assert found.remarks == ["complete: as many classes and images as the official set"]


def test_a_drawn_set_can_be_inspected():
    found, _ = inspect(Glyphs(classes=4, per_class=2, size=16), silent)  # type: ignore[call-arg]
    assert (found.classes, found.images, found.sound) == (4, 8, True)


LOOKED_AT = {
    "folder": lambda at: Folder(root=str(class_folders(at / "mine", CLASSES, 3))),
    "published": lambda at: MiniImageNet(root=str(mini_tables(at / "mini", 2))),
    "archive": lambda at: CIFAR100(root=str(packed(cifar(at / "cifar", 4, 1, 1), at / "cifar.tgz"))),
    "drawn": lambda at: Glyphs(classes=30, per_class=2, size=16),
}


@pytest.mark.parametrize("make", LOOKED_AT.values(), ids=LOOKED_AT)
def test_what_a_split_depends_on_is_found_without_the_cache(make, tmp_path):
    dataset = make(tmp_path)
    _, described = inspect(dataset, silent)
    loaded = dataset.load()
    for field in ("class_names", "fingerprint", "unseen", "groups"):
        assert getattr(described, field) == getattr(loaded, field)
    np.testing.assert_array_equal(described.labels, loaded.labels)


def test_an_archive_is_unpacked_once_and_leaves_nothing(tmp_path, own_cache, monkeypatch):
    unpacked = []
    monkeypatch.setattr(dataset_module, "unpack", lambda *a, **k: (unpacked.append(a), unpack(*a, **k)))
    inspect(LOOKED_AT["archive"](tmp_path), silent)
    assert len(unpacked) == 1
    assert list(own_cache.iterdir()) == []


def test_an_archive_with_nowhere_to_unpack_is_the_users_matter(tmp_path, monkeypatch):
    dataset = LOOKED_AT["archive"](tmp_path)
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cifar.tgz" / "cache"))
    with pytest.raises(InputError, match=r"cannot use the image cache .*: Not a directory; .* set EPISODICA_CACHE"):
        inspect(dataset, silent)


@pytest.fixture
def arrays(tmp_path):
    def load(size, images=3):
        folder = class_folders(tmp_path / "sheets-of", [*CLASSES, "猫" * 30, "été"], images)
        return Folder(root=str(folder), size=size).load()

    return load


def split_of(arrays):
    return make_split(arrays.labels, tasks=2, order="natural", seed=0, test_per_class=1, unseen=2)


def test_a_split_is_described_by_names_and_numbers(arrays):
    loaded = arrays(16)
    split = split_of(loaded)
    described = describe_split(split, loaded.class_names)
    assert described["hash"] == split.hash
    assert described["tasks"][1] == {"classes": ["cat", "dog"], "train_images": 4, "test_images": 2}
    assert described["unseen"] == {"classes": list(loaded.class_names[4:]), "images": 6}


@pytest.mark.parametrize(("size", "shown"), [(16, 64), (32, 64), (84, 84), (200, 128)])
def test_a_contact_sheet_for_each_task_and_the_unseen_classes(size, shown, arrays, tmp_path):
    loaded = arrays(size)
    paths = contact_sheets(split_of(loaded), loaded, tmp_path / "out" / "sheets")
    assert [path.name for path in paths] == ["task-01.png", "task-02.png", "unseen.png"]
    for path, across in zip(paths, (2, 2, 3), strict=True):
        with Image.open(path) as sheet:
            assert sheet.size == (110 + across * (shown + 2), 2 * (shown + 2))


def test_a_contact_sheet_shows_training_images_in_rows_of_classes(arrays, tmp_path):
    loaded = arrays(32)
    split = split_of(loaded)
    path = contact_sheets(split, loaded, tmp_path)[0]
    with Image.open(path) as sheet:
        pixels = np.asarray(sheet)
    for y, c in enumerate((0, 1)):
        for x, row in enumerate(split.train[0][c]):
            cell = pixels[y * 66 : y * 66 + 64, 110 + x * 66 : 110 + x * 66 + 64]
            np.testing.assert_array_equal(cell[::2, ::2], loaded.images[row])


NAMES = {"ant": "ant", "été à Nîmes": "ete a Nimes", "猫 cats": "cats", "猫": "class 7", "a" * 30: "a" * 17}


@pytest.mark.parametrize(("name", "label"), NAMES.items())
def test_labels_have_what_the_font_can_draw(name, label):
    assert inspection._label(7, name) == label


def test_sheets_that_cannot_be_written_are_named(arrays, tmp_path):
    (tmp_path / "file").touch()
    loaded = arrays(16)
    with pytest.raises(InputError, match=r"cannot write contact sheets into .*: Not a directory; choose another"):
        contact_sheets(split_of(loaded), loaded, tmp_path / "file" / "x")
