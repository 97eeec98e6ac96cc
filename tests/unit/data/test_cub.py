import io
import tarfile

import numpy as np
import pytest

from episodica.data.cub import CUB
from episodica.data.decode import decode
from episodica.errors import InputError
from unit.data.layouts import cub, packed, picture, png, write_png

CLASSES, IMAGES = 5, 3


@pytest.fixture
def folder(tmp_path):
    return cub(tmp_path / "CUB_200_2011", CLASSES, IMAGES)


def load(root):
    return CUB(root=str(root)).load()


def replace_line(path, number, line):
    lines = path.read_text().splitlines()
    lines[number] = line
    path.write_text("\n".join(lines))


def test_images_come_in_the_order_of_their_numbers(folder):
    lines = (folder / "images.txt").read_text().splitlines()
    (folder / "images.txt").write_text("\r\n".join(reversed(lines)))
    arrays = load(folder)
    np.testing.assert_array_equal(arrays.images, [decode(picture(i, 96), 84) for i in range(CLASSES * IMAGES)])
    assert arrays.labels.tolist() == np.repeat(np.arange(CLASSES), IMAGES).tolist()
    assert arrays.class_names == tuple(f"{c + 1:03d}.Bird_{c}" for c in range(CLASSES))
    assert arrays.unseen is None


def test_the_archive_is_the_same_set_as_the_folder(folder, tmp_path):
    archive = packed(folder, tmp_path / "away" / "CUB_200_2011.tgz")
    fingerprints = {load(root).fingerprint for root in (folder, tmp_path, archive, archive.parent)}
    assert len(fingerprints) == 1


def test_classes_of_which_there_is_no_image_are_left_out(folder):
    """So that a part of the set can be read with the official list of classes."""
    with (folder / "classes.txt").open("a") as file:
        file.write("6 006.Missing_bird\n200 200.Missing_bird\n")
    assert len(load(folder).class_names) == CLASSES


def test_the_protocol_takes_20_test_images_and_a_fifth_of_the_classes():
    assert CUB().test_per_class(np.full(200, 59)) == 20
    assert CUB().unseen_classes(200) == 40


BROKEN = {
    "no class for an image": ("image_class_labels.txt", "", "do not speak of the same images"),
    "no name for a class": ("image_class_labels.txt", "1 99", "do not speak of the same images"),
    "an image too many": ("images.txt", "99 x.jpg", "do not speak of the same images"),
    "a number twice": ("images.txt", "2 x.jpg", "has two lines with the number 2"),
    "no number": ("images.txt", "one x.jpg", "must have lines of the form NUMBER VALUE, and has 'one x.jpg'"),
    "a curious number": ("images.txt", "² x.jpg", "must have lines of the form NUMBER VALUE"),
    "an endless number": ("images.txt", "1" * 9999 + " x.jpg", "must have lines of the form NUMBER VALUE"),
    "no value": ("classes.txt", "1", "must have lines of the form NUMBER VALUE"),
    "a file that is not there": ("images.txt", "1 x.jpg", "images/x.jpg: no such file"),
    "a file above": ("images.txt", "1 ../../secret.png", "names ../../secret.png, which is outside the data set"),
    "a hidden way up": ("images.txt", "1 a/../../../secret.png", "which is outside the data set"),
    "an absolute name": ("images.txt", "1 /etc/passwd", "names /etc/passwd, which is outside the data set"),
}


@pytest.mark.parametrize(("file", "line", "message"), BROKEN.values(), ids=BROKEN)
def test_tables_that_do_not_agree_or_point_outside_are_refused(file, line, message, folder, own_cache):
    write_png(folder.parent / "secret.png", picture(0))
    replace_line(folder / file, 0, line)
    with pytest.raises(InputError) as refusal:
        load(folder)
    assert message in str(refusal.value)
    assert not list(own_cache.rglob("*.npy"))


def test_a_table_that_is_no_text_is_refused(folder):
    (folder / "classes.txt").write_bytes(b"\xff\x00\xfe")
    with pytest.raises(InputError, match=r"classes\.txt is not a text file"):
        load(folder)


def archive_with(member, tmp_path, data=b""):
    path = tmp_path / "CUB_200_2011.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["../outside.png", "/tmp/outside.png", "CUB/../../outside.png"])
def test_an_archive_that_reaches_outside_is_refused(name, tmp_path, own_cache):
    member = tarfile.TarInfo(name)
    member.size = len(png(picture(0)))
    with pytest.raises(InputError, match="is not a plain relative name"):
        load(archive_with(member, tmp_path, png(picture(0))))
    assert not list(own_cache.rglob("*.png"))
    assert not list(tmp_path.glob("*.png"))


def test_an_archive_with_a_link_is_refused(tmp_path):
    member = tarfile.TarInfo("CUB_200_2011/images.txt")
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with pytest.raises(InputError, match="is a link"):
        load(archive_with(member, tmp_path))


def test_an_archive_of_something_else_is_refused_and_leaves_nothing(tmp_path, own_cache):
    member = tarfile.TarInfo("birds/readme")
    with pytest.raises(InputError, match=r"does not hold cub\. Get cub from .* Found in it: birds/"):
        load(archive_with(member, tmp_path))
    assert not list(own_cache.glob("unpacked-*"))


def test_an_image_cut_short_is_named(folder):
    path = folder / "images/001.Bird_0/001.Bird_0_1.png"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"1 of 15 images cannot be read.*001\.Bird_0_1\.png: is damaged"):
        load(folder)
