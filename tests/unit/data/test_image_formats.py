"""HEIC and AVIF as phones and browsers write them, and JPEGs that are too large to be decoded as a whole."""

import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from episodica.data.decode import Unreadable, decode
from episodica.data.decoding_process import DecodingProcess
from episodica.data.image_formats import IMAGE_SUFFIXES, UNREAD_SUFFIXES, is_image_file, is_unread_image_file

HALVES = np.zeros((64, 96, 3), np.uint8)
HALVES[:, 48:] = 200


def encoded(kind: str, pixels: np.ndarray = HALVES, **options: object) -> bytes:
    file = BytesIO()
    if kind == "HEIF":
        pillow_heif = pytest.importorskip("pillow_heif", reason="the extra photos is not installed")
        pillow_heif.from_pillow(Image.fromarray(pixels)).save(file, quality=90)
    else:
        Image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["AVIF", "HEIF"])
def test_pictures_of_phones_are_read_as_any_other(kind):
    assert np.abs(decode(encoded(kind), 32).astype(int) - decode(HALVES, 32)).max() < 16
    assert "HEIF" not in Image.OPEN  # nothing of the process is changed


@pytest.mark.parametrize("kind", ["AVIF", "HEIF"])
def test_declared_sizes_are_checked_before_anything_is_decoded(kind):
    data = encoded(kind)
    with pytest.raises(Unreadable, match="more than 1,000"):
        decode(data, 32, max_pixels=1_000)
    where = data.index(b"ispe") + 8
    lie = data[:where] + (60_000).to_bytes(4, "big") * 2 + data[where + 8 :]
    with pytest.raises(Unreadable):
        decode(lie, 32)


@pytest.mark.parametrize("kind", ["AVIF", "HEIF"])
def test_damage_gives_a_reason(kind):
    data = encoded(kind)
    for end in (13, 40, len(data) // 2, len(data) - 20):
        with pytest.raises(Unreadable):
            decode(data[:end], 32)


def test_what_is_missing_is_named(monkeypatch):
    heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
    monkeypatch.setitem(sys.modules, "pillow_heif.as_plugin", None)
    with pytest.raises(Unreadable, match=r"is a HEIC image, and reading it takes pip install 'episodica\[photos\]'"):
        decode(heic, 32)
    monkeypatch.setattr("PIL.features.check", lambda name: False)
    with pytest.raises(Unreadable, match="is an AVIF image, which the installed Pillow does not read"):
        decode(b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", 32)


@pytest.mark.parametrize("kind", ["AVIF", "HEIF"])
def test_they_are_decoded_within_the_limits_of_a_process(kind):
    with DecodingProcess() as process:
        square = process.decode(encoded(kind), 32, "photo", 1_000_000, 60)
        with pytest.raises(Unreadable, match="more than 1,000"):
            process.decode(encoded(kind), 32, "photo", 1_000, 60)
    assert np.array_equal(square, decode(encoded(kind), 32))


def test_a_jpeg_above_the_limit_is_decoded_at_a_fraction():
    pixels = np.kron(
        np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8), np.ones((100, 100, 1), np.uint8)
    )
    data = encoded("JPEG", pixels)
    reduced = decode(data, 32, max_pixels=100_000)  # of 540,000
    assert np.abs(reduced.astype(int) - decode(data, 32)).mean() < 3
    with pytest.raises(Unreadable, match=r"has 900 x 600 pixels, more than 100,000"):
        decode(encoded("PNG", pixels), 32, max_pixels=100_000)
    with pytest.raises(Unreadable, match=r"has 900 x 600 pixels, more than 100,000"):
        decode(encoded("JPEG", pixels, progressive=True), 32, max_pixels=100_000)  # is held in memory as a whole
    with pytest.raises(Unreadable, match="more than 100,000"):
        decode(data, 300, max_pixels=100_000)  # a fraction would be too small


def test_a_photo_of_48_megapixels_takes_little_memory():
    photo = encoded("JPEG", np.full((6_000, 8_000, 3), 90, np.uint8), quality=60)
    with DecodingProcess() as process:
        square = process.decode(photo, 64, "photo", 25_000_000, 60)
    assert np.abs(square.astype(int) - 90).max() <= 2


def test_no_suffix_is_of_both_kinds():
    assert not IMAGE_SUFFIXES & UNREAD_SUFFIXES
    assert is_image_file(Path("IMG_1.HEIC"))
    assert is_unread_image_file(Path("IMG_1.CR3"))
    assert not is_unread_image_file(Path("._IMG_1.CR3"))
