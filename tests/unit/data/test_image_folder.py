from dataclasses import replace

import numpy as np
import pytest

from episodica.config import resolve
from episodica.config.flat import nest
from episodica.data.dataset import silent
from episodica.data.decode import decode
from episodica.data.image_folder import Folder
from episodica.data.inspection import inspect
from episodica.engine.experiment import split_of
from episodica.errors import InputError
from unit.data.layouts import class_folders, packed, picture, published_folders, write_png

CLASSES = ("ant", "bee", "cat", "dog")


@pytest.fixture
def folder(tmp_path):
    return class_folders(tmp_path / "mine", CLASSES, 3)


def load(root, **fields):
    return Folder(root=str(root), **fields).load()


def test_a_folder_for_each_class(folder):
    arrays = load(folder, size=24)
    expected = [decode(picture(1000 * c + i, 20), 24) for c in range(4) for i in range(3)]
    np.testing.assert_array_equal(arrays.images, expected)
    assert arrays.labels.tolist() == np.repeat(np.arange(4), 3).tolist()
    assert arrays.class_names == CLASSES
    assert arrays.unseen is None


def test_an_image_of_the_wanted_size_keeps_every_pixel(folder):
    np.testing.assert_array_equal(load(folder, size=20).images[0], picture(0, 20))


def test_parts_are_a_published_split(tmp_path):
    folder = published_folders(tmp_path / "mine", 2)
    arrays = load(folder)
    assert arrays.class_names == ("train_0", "train_1", "train_2", "train_3", "val_0", "val_1", *arrays.class_names[6:])
    assert arrays.unseen == (6, 7, 8)
    for order, seed in (("seeded", 0), ("seeded", 1), ("natural", 0)):
        config = resolve(nest({"data.name": "folder", "stream.order": order, "stream.seed": seed, "stream.tasks": 2}))
        split = split_of(config, Folder(), with_more_images(arrays))
        assert tuple(split.unseen) == arrays.unseen


def with_more_images(arrays):
    """Five times as many rows: enough for the default split."""
    return replace(arrays, labels=np.tile(arrays.labels, 5))


def test_other_unseen_classes_than_the_published_ones_are_refused(tmp_path):
    arrays = with_more_images(load(published_folders(tmp_path / "mine", 2)))
    asked = {"data.name": "folder", "stream.tasks": 2}
    with pytest.raises(InputError, match=r"stream.unseen_classes = 2: the split files of this folder name 3 unseen"):
        split_of(resolve(nest({**asked, "stream.unseen_classes": 2})), Folder(), arrays)
    assert len(split_of(resolve(nest({**asked, "stream.unseen_classes": 3})), Folder(), arrays).unseen) == 3


def test_val_may_be_missing_and_may_share_classes_with_train(tmp_path):
    class_folders(tmp_path / "train", ["a", "b"], 2)
    class_folders(tmp_path / "test", ["c", "d"], 2)
    assert (load(tmp_path).class_names, load(tmp_path).unseen) == (("a", "b", "c", "d"), (2, 3))
    class_folders(tmp_path / "val", ["b", "e"], 2)
    arrays = load(tmp_path)
    assert (arrays.class_names, arrays.unseen) == (("a", "b", "e", "c", "d"), (3, 4))
    assert np.bincount(arrays.labels).tolist() == [2, 4, 2, 2, 2]


def test_a_class_in_train_and_in_test_is_refused(tmp_path):
    class_folders(tmp_path / "train", ["a", "b"], 2)
    class_folders(tmp_path / "test", ["b", "c"], 2)
    with pytest.raises(InputError, match=r"class b is in test and in another part, .* into one folder"):
        load(tmp_path)


def test_names_are_taken_as_they_are(tmp_path):
    odd = ["été à Nîmes", "with [brackets]", "猫", "  spaces "]
    for name in odd:
        for file in ("Ünï cödé.PNG", "a b c.Png"):
            write_png(tmp_path / name / "deep er" / file, picture(0, 20))
    arrays = load(tmp_path)
    assert arrays.class_names == tuple(sorted(odd))
    assert len(arrays.images) == 8


def test_a_name_in_another_encoding_is_no_obstacle(folder):
    (folder / "ant").rename(folder / "ant\udce9")
    assert load(folder).class_names[0] == "ant\udce9"


@pytest.mark.parametrize(
    "litter",
    [
        *(".DS_Store", "Thumbs.db", "readme.txt", ".hidden.png", "ant/notes.md", "ant/._0.png", "ant/.trash/1.png"),
        *(".git/objects/a.png", "__MACOSX/ant/0.png", "ant/__MACOSX/0.png", "ant/.ipynb_checkpoints/0.png"),
        *("loose.png", "empty/nothing.txt", "ant/folder.png/nothing.txt"),
    ],
)
def test_litter_is_passed_over(litter, folder):
    (folder / litter).parent.mkdir(parents=True, exist_ok=True)
    (folder / litter).write_bytes(b"not an image")
    (folder / "ant" / "gone.png").symlink_to("nowhere.png")
    arrays = load(folder)
    assert arrays.class_names == CLASSES
    assert len(arrays.images) == 12


def test_a_class_too_small_for_any_episode_is_named(folder):
    class_folders(folder, ["eel", "fox"], 1)
    with pytest.raises(InputError, match=r"fewer of eel \(1\), fox \(1\); .* out with data\.min_images = 2"):
        load(folder)
    published_folders(folder.parent / "parts", 2)
    class_folders(folder.parent / "parts/train", ["gnu"], 1)
    with pytest.raises(InputError, match=r"fewer of gnu \(1\); "):
        load(folder.parent / "parts")


def test_a_class_in_two_parts_is_as_large_as_both(tmp_path):
    folder = published_folders(tmp_path / "parts", 3)
    class_folders(folder / "train", ["gnu"], 2)
    class_folders(folder / "val", ["gnu"], 1)
    found = load(folder, min_images=3)
    assert (found.labels == found.class_names.index("gnu")).sum() == 3
    with pytest.raises(InputError, match=r"0 classes in train and val"):
        load(folder, min_images=4)


def test_of_many_small_classes_the_first_are_named(folder):
    class_folders(folder, [f"x{c:02d}" for c in range(20)], 1)
    with pytest.raises(InputError, match=r"x00 \(1\), .*x07 \(1\) and 12 more; add some"):
        load(folder)


def test_small_classes_are_left_out_where_asked_and_named(folder):
    class_folders(folder, ["eel"], 1)
    class_folders(folder, ["fox"], 4)
    assert load(folder, min_images=2).class_names == (*CLASSES, "fox")
    found, _ = inspect(Folder(root=str(folder), min_images=2), silent)
    assert found.remarks == ["left out, by data.min_images: eel (1)"]
    class_folders(folder, ["gnu", "hen", "ibis"], 4, 5)
    assert load(folder, min_images=4).class_names == ("fox", "gnu", "hen", "ibis")


def test_too_few_classes_are_refused(folder):
    with pytest.raises(InputError, match="mine has 0 classes in train and val and 2 in test"):
        load(_with_tiny_train(folder.parent / "mine"), min_images=3)
    class_folders(folder.parent / "other", ["a", "b", "c"], 3)
    with pytest.raises(InputError, match="other has 3 classes with at least 2 images: there must be 4"):
        load(folder.parent / "other")


def _with_tiny_train(folder):
    class_folders(folder / "train", ["a", "b"], 2)
    class_folders(folder / "test", ["c", "d"], 3)
    return folder


@pytest.mark.parametrize("write", [lambda f: class_folders(f, CLASSES, 3), lambda f: published_folders(f, 2)])
def test_the_folder_its_parent_and_an_archive_of_it_are_the_same_set(write, tmp_path):
    folder = write(tmp_path / "up" / "mine")
    archive = packed(folder, tmp_path / "mine.tgz")
    assert len({load(root).fingerprint for root in (folder, folder.parent, archive)}) == 1


def test_a_fifth_is_held_out():
    counts = np.array([40, 23, 60])
    assert (Folder().test_per_class(counts), Folder().unseen_classes(31)) == (4, 6)
    assert (Folder().test_per_class(np.array([5, 5])), Folder().unseen_classes(4)) == (2, 2)


def test_every_unreadable_image_is_named(folder, own_cache):
    for path in ("ant/0.png", "dog/2.png"):
        (folder / path).write_bytes(b"nonsense")
    (folder / "cat/1.png").write_bytes((folder / "cat/1.png").read_bytes()[:60])
    with pytest.raises(InputError) as refusal:
        load(folder)
    assert "3 of 12 images cannot be read" in str(refusal.value)
    assert all(
        name in str(refusal.value) for name in ("ant/0.png: is not an image", "cat/1.png: is damaged", "dog/2.png")
    )
    assert {path.name for path in own_cache.rglob("*") if path.is_file()} <= {".lock"}


def test_of_many_unreadable_images_the_first_are_named(tmp_path):
    for c in CLASSES:
        for i in range(5):
            (tmp_path / c).mkdir(exist_ok=True)
            (tmp_path / c / f"{i}.jpg").touch()
    with pytest.raises(InputError, match=r"20 of 20 images .*bee/4\.jpg: is empty and 10 more\. Repair or remove"):
        load(tmp_path)
