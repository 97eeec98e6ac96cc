import numpy as np
import pytest

from episodica.data.mini_imagenet import MiniImageNet
from episodica.errors import InputError
from unit.data.layouts import dump, mini_caches, mini_tables, nested, packed, picture, published_folders, write_png

IMAGES = 3
NAMES = (*(f"n_train_{c}" for c in range(4)), *(f"n_val_{c}" for c in range(2)), *(f"n_test_{c}" for c in range(3)))
LAYOUTS = {
    "tables": mini_tables,
    "caches": mini_caches,
    "caches of Python 2": lambda folder, images: mini_caches(folder, images, bytes),
}


def load(root):
    return MiniImageNet(root=str(root)).load()


@pytest.mark.parametrize("write", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_set_with_the_published_split(write, tmp_path):
    arrays = load(write(tmp_path / "mini", IMAGES))
    np.testing.assert_array_equal(arrays.images, [picture(i) for i in range(9 * IMAGES)])
    assert arrays.labels.tolist() == np.repeat(np.arange(9), IMAGES).tolist()
    assert arrays.class_names == NAMES
    assert arrays.unseen == (6, 7, 8)


def test_all_layouts_have_one_fingerprint(tmp_path):
    assert len({load(write(tmp_path / name, IMAGES)).fingerprint for name, write in LAYOUTS.items()}) == 1


def test_folders_are_a_published_split(tmp_path):
    arrays = load(published_folders(tmp_path / "mini", IMAGES))
    assert arrays.class_names == tuple(name.removeprefix("n_") for name in NAMES)
    assert arrays.unseen == (6, 7, 8)
    assert (arrays.images[-1, 0, 0] == picture(22_000 + IMAGES - 1, 20)[0, 0]).all()


def test_an_archive_is_read(tmp_path):
    folder = mini_tables(tmp_path / "mini", IMAGES)
    assert load(packed(folder, tmp_path / "away" / "mini.tgz")).fingerprint == load(folder).fingerprint


def test_images_and_lines_in_any_order_belong_to_their_class(tmp_path):
    folder = mini_tables(tmp_path / "mini", IMAGES)
    header, *lines = (folder / "train.csv").read_text().splitlines()
    (folder / "train.csv").write_text("\n".join(["\ufeff" + header, *reversed(lines)]), encoding="utf-8")
    arrays = load(folder)
    assert arrays.class_names == NAMES
    np.testing.assert_array_equal(arrays.images[0], picture(IMAGES - 1))


def test_litter_beside_the_images_does_no_harm(tmp_path):
    folder = mini_tables(tmp_path / "mini", IMAGES)
    (folder / "images" / "gone.jpg").symlink_to(tmp_path / "nowhere")
    (folder / "images" / "sub").mkdir()
    assert load(folder).class_names == NAMES


TABLES = {
    "without columns": ("n1.png,a\n", "val.csv needs the columns filename and label"),
    "without lines": ("filename,label\n", "at least one line"),
    "empty": ("", "needs the columns filename and label"),
    "with a short line": ("filename,label\nx.png\n", "has a line without filename or label"),
    "with a missing file": ("filename,label\nx.png,a\n", "x.png: no such file"),
    "not a table": (b"\xff\xfe\x00\x01", "is not a readable csv file"),
    "with an endless field": ("filename,label\n" + "x" * 200_000, "is not a readable csv file"),
}


@pytest.mark.parametrize(("content", "message"), TABLES.values(), ids=TABLES)
def test_a_wrong_table_is_refused_by_name(content, message, tmp_path, own_cache):
    folder = mini_tables(tmp_path / "mini", IMAGES)
    (folder / "val.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as refusal:
        load(folder)
    assert message in str(refusal.value)
    assert not list(own_cache.rglob("*.npy"))


@pytest.mark.parametrize("place", ["../../secret.png", "{}/secret.png", ".."])
def test_a_table_cannot_name_files_outside(place, tmp_path):
    write_png(tmp_path / "secret.png", picture(0))
    folder = mini_tables(tmp_path / "x" / "mini", IMAGES)
    (folder / "val.csv").write_text(f"filename,label\n{place.format(tmp_path)},a\n")
    with pytest.raises(InputError, match=r"1 of 22 images cannot be read: .*/images/"):
        load(folder)


def test_a_class_in_two_parts_is_refused(tmp_path):
    tables, caches = mini_tables(tmp_path / "tables", IMAGES), mini_caches(tmp_path / "caches", IMAGES)
    (tables / "test.csv").write_text((tables / "test.csv").read_text().replace("n_test_0", "n_val_1"))
    with pytest.raises(InputError, match="class n_val_1 is in test and in another part"):
        load(tables)
    other = caches / "mini-imagenet-cache-test.pkl"
    other.write_bytes((caches / "mini-imagenet-cache-train.pkl").read_bytes())
    with pytest.raises(InputError, match="class n_train_0 is in another part of the split too"):
        load(caches)


PIXELS = np.zeros((4, 84, 84, 3), np.uint8)
CACHES = {
    "no dict": ([1], "is not a dict with names as keys"),
    "no images": ({"class_dict": {"a": [0]}}, "it needs image_data"),
    "no classes": ({"image_data": PIXELS}, "it needs image_data [n, 84, 84, 3] and class_dict"),
    "empty classes": ({"image_data": PIXELS, "class_dict": {}}, "it needs image_data"),
    "other pixels": ({"image_data": PIXELS / 255, "class_dict": {"a": [0]}}, "it needs image_data"),
    "no colours": ({"image_data": PIXELS[..., 0], "class_dict": {"a": [0]}}, "it needs image_data"),
    "four channels": ({"image_data": PIXELS.reshape(4, 84, 63, 4), "class_dict": {"a": [0, 1]}}, "not uint8 [H, W]"),
    "a list for classes": ({"image_data": PIXELS, "class_dict": [0, 1]}, "class_dict is not a dict with names as keys"),
    "a row too far": ({"image_data": PIXELS, "class_dict": {"a": [0, 4]}}, "points outside image_data, which has 4"),
    "a negative row": ({"image_data": PIXELS, "class_dict": {"a": [-1]}}, "points outside image_data"),
    "a class of nothing": ({"image_data": PIXELS, "class_dict": {"a": []}}, "points outside image_data"),
    "rows in lists": ({"image_data": PIXELS, "class_dict": {"a": [[0]]}}, "class_dict['a'] is not a flat list"),
    "rows without end": ({"image_data": PIXELS, "class_dict": {"a": nested(60)}}, "is not a flat list of whole"),
    "numbered classes": ({"image_data": PIXELS, "class_dict": {1: [0]}}, "class_dict is not a dict with names as keys"),
}


@pytest.mark.parametrize(("value", "message"), CACHES.values(), ids=CACHES)
def test_a_wrong_cache_is_refused_by_name(value, message, tmp_path, own_cache):
    folder = mini_caches(tmp_path / "mini", IMAGES)
    dump(value, folder / "mini-imagenet-cache-val.pkl")
    with pytest.raises(InputError) as refusal:
        load(folder)
    assert message in str(refusal.value)
    assert not list(own_cache.rglob("*.npy"))
