"""Every odd, hostile and broken image that a folder may hold, against an oracle one can check by eye."""

import pickle
import struct
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from os import mkfifo, truncate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile

from episodica.data import decode as module
from episodica.data.decode import Unreadable, decode
from episodica.data.image_formats import IMAGE_SUFFIXES, is_image_file

RED, GREEN, BLUE, WHITE, BLACK, YELLOW = (
    (255, 0, 0),
    (0, 255, 0),
    (0, 0, 255),
    (255, 255, 255),
    (0, 0, 0),
    (255, 255, 0),
)
SIZE = 24


def quadrants(height: int = SIZE, width: int = SIZE) -> np.ndarray:
    """Red, green / blue, yellow."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[: height // 2, : width // 2], picture[: height // 2, width // 2 :] = RED, GREEN
    picture[height // 2 :, : width // 2], picture[height // 2 :, width // 2 :] = BLUE, YELLOW
    return picture


def encoded(picture: Image.Image | np.ndarray, kind: str, **options: object) -> bytes:
    picture = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    stream = BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def png(width: int, height: int, depth: int, colour: int, rows: bytes) -> bytes:
    """A PNG by hand, of kinds that Pillow does not write and of sizes that nothing backs."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body


def apart(one: np.ndarray, other: np.ndarray | tuple[int, ...]) -> int:
    return int(np.abs(one.astype(int) - np.asarray(other).astype(int)).max())


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


# Kinds


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "WEBP"])
def test_a_lossless_image_of_the_size_keeps_every_pixel(kind: str) -> None:
    options = {"lossless": True} if kind == "WEBP" else {}
    assert np.array_equal(decode(encoded(noise(84, 84), kind, **options), 84), noise(84, 84))


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "GIF"])
def test_a_lossy_image_stays_close(kind: str) -> None:
    out = decode(encoded(quadrants(32, 32), kind, quality=95), 32)
    assert apart(out[4::8, 4::8], quadrants(32, 32)[4::8, 4::8]) <= 8


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "GIF"])
@pytest.mark.parametrize("mode", ["1", "L", "P"])
def test_grey_and_palette(kind: str, mode: str) -> None:
    checks = Image.fromarray(np.kron(np.indices((4, 4)).sum(0) % 2 * 255, np.ones((6, 6))).astype(np.uint8))
    expected = np.repeat(np.asarray(checks)[..., None], 3, axis=2)
    assert np.array_equal(decode(encoded(checks.convert(mode), kind), SIZE), expected)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_what_is_transparent_lies_over_white(kind: str) -> None:
    layers = np.dstack([quadrants(), np.full((SIZE, SIZE), 255, np.uint8)])
    layers[:12, :12, 3], layers[12:, 12:] = 0, (0, 0, 0, 128)
    out = decode(encoded(layers, kind, **({"lossless": True, "exact": True} if kind == "WEBP" else {})), SIZE)
    assert [tuple(out[y, x]) for y, x in [(3, 3), (3, 20), (20, 3)]] == [WHITE, GREEN, BLUE]
    assert apart(out[20, 20], (127, 127, 127)) <= 1


def test_hidden_colours_do_not_bleed_into_a_smaller_picture() -> None:
    layers = np.dstack([np.full((64, 64, 3), RED, np.uint8), np.zeros((64, 64), np.uint8)])
    layers[:, 32:] = (*WHITE, 255)
    assert (decode(encoded(layers, "PNG"), 10) == 255).all()


def test_grey_with_alpha() -> None:
    out = decode(
        encoded(Image.merge("LA", [Image.new("L", (8, 8), 0), Image.linear_gradient("L").resize((8, 8))]), "PNG"), 8
    )
    assert out[0, 0, 0] > 230
    assert out[7, 0, 0] < 25
    assert (out[..., 0] == out[..., 2]).all()


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_a_transparent_palette_entry(kind: str) -> None:
    picture = Image.new("P", (8, 8), 1)
    picture.putpalette([*BLACK, *RED, *BLUE])
    picture.paste(2, (0, 0, 4, 8))
    out = decode(encoded(picture, kind, transparency=2), 8)
    assert tuple(out[0, 0]) == WHITE
    assert tuple(out[0, 7]) == RED


def test_a_palette_with_alpha_in_bytes() -> None:
    picture = Image.new("P", (8, 8), 1)
    picture.putpalette([*BLACK, *BLACK])
    assert apart(decode(encoded(picture, "PNG", transparency=bytes([255, 128])), 8), (127, 127, 127)) <= 1


@pytest.mark.parametrize(("mode", "key"), [("L", 7), ("RGB", (7, 7, 7)), ("1", 0)])
def test_one_colour_meant_as_transparent(mode: str, key: object) -> None:
    assert (decode(encoded(Image.new(mode, (8, 8), key), "PNG", transparency=key), 8) == 255).all()  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("order", ["<u2", ">u2"])
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_of_grey(kind: str, order: str) -> None:
    ramp = np.arange(65536).reshape(256, 256)
    out = decode(encoded(ramp.astype(order), kind), 256)
    assert (np.abs(out - ramp[..., None] / 257) <= 1).all()
    assert (np.diff(out[..., 0].ravel().astype(int)) >= 0).all()
    assert (out.min(), out.max()) == (0, 255)


@pytest.mark.parametrize(("colour", "channels"), [(2, 3), (4, 2), (6, 4)])
def test_sixteen_bits_of_colour_and_alpha(colour: int, channels: int) -> None:
    values = np.full((8, 8, channels), 65535, ">u2")
    values[..., : 3 if channels > 2 else 1] = np.linspace(0, 65535, 8).astype(int)[:, None, None]
    rows = b"".join(b"\0" + row.tobytes() for row in values)
    assert (np.abs(decode(png(8, 8, 16, colour, rows), 8) - values[..., :1] / 257) <= 1).all()


@pytest.mark.parametrize(
    "values",
    [
        np.array([-70_000, 0, 70_000], np.int32),
        np.array([0, 0.5, 1], np.float32),
        np.array([-1e38, 0, 1e38], np.float32),
    ],
)
def test_wide_numbers_span_black_to_white(values: np.ndarray) -> None:
    out = decode(encoded(np.tile(values, (3, 1)), "TIFF"), 3)
    assert apart(out[0, :, 0], (0, 128, 255)) <= 1


def test_numbers_that_are_none() -> None:
    out = decode(encoded(np.array([[np.nan, np.inf], [-np.inf, 3], [2, 4]], np.float32), "TIFF"), 2)
    assert out.shape == (2, 2, 3)
    assert (decode(encoded(np.full((2, 2), np.nan, np.float32), "TIFF"), 2) == 0).all()
    assert (decode(encoded(np.full((2, 2), 5, np.int32), "TIFF"), 2) == 0).all()


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk(kind: str) -> None:
    out = decode(encoded(Image.fromarray(quadrants(32, 32)).convert("CMYK"), kind, quality=95), 32)
    assert apart(out[4::8, 4::8], quadrants(32, 32)[4::8, 4::8]) <= 8


def test_ycck() -> None:
    inks = Image.fromarray(255 - quadrants(32, 32)).convert("YCbCr")
    channels = [Image.fromarray(255 - np.asarray(band)) for band in inks.split()]
    data = encoded(Image.merge("CMYK", [*channels, Image.new("L", inks.size, 0)]), "JPEG", quality=95)
    transform = data.index(b"Adobe") + 11
    out = decode(data[:transform] + b"\2" + data[transform + 1 :], 32)
    assert apart(out[4::8, 4::8], quadrants(32, 32)[4::8, 4::8]) <= 8


@pytest.mark.parametrize(("mode", "tolerance"), [("LAB", 24), ("YCbCr", 4)])
def test_other_colour_spaces(mode: str, tolerance: int) -> None:
    out = decode(encoded(Image.fromarray(quadrants()).convert(mode), "TIFF"), SIZE)
    assert apart(out, quadrants()) <= tolerance


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_the_first_frame_counts(kind: str) -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in (RED, BLUE, GREEN)]
    out = decode(encoded(frames[0], kind, save_all=True, append_images=frames[1:]), 16)
    assert apart(out, RED) <= 4


def test_a_phone_photo_with_a_second_picture_inside() -> None:
    data = encoded(
        Image.new("RGB", (16, 16), RED), "MPO", save_all=True, append_images=[Image.new("RGB", (16, 16), BLUE)]
    )
    assert apart(decode(data, 16), RED) <= 4


STORED: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    1: lambda upright: upright,
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.swapaxes(0, 1),
    6: lambda upright: np.rot90(upright, 1),
    7: lambda upright: np.rot90(upright, 2).swapaxes(0, 1),
    8: lambda upright: np.rot90(upright, -1),
}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", STORED)
def test_exif_orientations(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = quadrants(48, 64)
    options = {"lossless": True} if kind == "WEBP" else {"quality": 95}
    out = decode(encoded(np.ascontiguousarray(STORED[orientation](upright)), kind, exif=exif, **options), 48)
    assert apart(out[4::8, 4::8], upright[:, 8:-8][4::8, 4::8]) <= 8


def test_a_torn_exif_block_leaves_the_picture() -> None:
    data = encoded(quadrants(), "JPEG", quality=95, exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12\0\x03")
    assert apart(decode(data, SIZE)[2, 2], RED) <= 8


# Sizes


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 3000), (3000, 1), (7, 5), (200, 300)])
@pytest.mark.parametrize("size", [1, 8, 84])
def test_one_colour_stays_one_colour_at_any_size(height: int, width: int, size: int) -> None:
    out = decode(encoded(np.full((height, width, 3), (10, 200, 90), np.uint8), "PNG"), size)
    assert out.shape == (size, size, 3)
    assert out.dtype == np.uint8
    assert (out == (10, 200, 90)).all()


@pytest.mark.parametrize(("height", "width", "tolerance"), [(100, 300, 1), (300, 100, 1), (40, 20, 0), (640, 320, 4)])
def test_the_middle_of_the_resized_picture(height: int, width: int, tolerance: int) -> None:
    """Noise is the worst case: a large picture is averaged before it is resampled."""
    picture, scale = noise(height, width), 20 / min(height, width)
    whole = Image.fromarray(picture).resize((round(width * scale), round(height * scale)), Image.Resampling.BICUBIC)
    left, top = (whole.width - 20) // 2, (whole.height - 20) // 2
    assert apart(decode(picture, 20), np.asarray(whole.crop((left, top, left + 20, top + 20)))) <= tolerance


@given(st.integers(1, 12), st.integers(1, 12), st.booleans())
def test_a_cut_alone_moves_no_pixel(height: int, width: int, grey: bool) -> None:
    picture, side = noise(height, width), min(height, width)
    picture = picture[..., 0] if grey else picture
    top, left = (height - side) // 2, (width - side) // 2
    cut = picture[top : top + side, left : left + side]
    assert np.array_equal(decode(picture, side), np.dstack([cut] * 3) if grey else cut)


def test_the_result_is_no_view_of_the_input() -> None:
    picture = noise(8, 8)
    decode(picture, 8)[:] = 0
    assert picture.any()


# Sources


def test_sources_agree(tmp_path: Path) -> None:
    data = encoded(noise(30, 40), "PNG")
    (tmp_path / "ünï 图.png").write_bytes(data)
    results = [decode(source, 16) for source in (data, memoryview(data), tmp_path / "ünï 图.png", noise(30, 40))]
    assert all(np.array_equal(result, results[0]) for result in results)


@pytest.mark.parametrize(
    "array", [np.zeros((4, 4)), np.zeros((0, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros(4, np.uint8)]
)
def test_other_arrays_are_refused(array: np.ndarray) -> None:
    with pytest.raises(Unreadable, match=r"^row 7: is an array .* not uint8"):
        decode(array, 8, name="row 7")


# Broken and hostile


def refusal(image: Path | bytes, name: str | None = None) -> str:
    with pytest.raises(Unreadable) as caught:
        decode(image, 8, name)
    assert str(caught.value) == f"{caught.value.name}: {caught.value.reason}"
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"hello, this is no image",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n",
        b"%PDF-1.4\n",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"P6 1 1 255 abc",
        encoded(quadrants(), "ICO"),
        encoded(quadrants(), "JPEG2000"),
        encoded(quadrants(), "PCX"),
        bytes(1000),
    ],
)
def test_other_kinds_of_files_are_refused(data: bytes) -> None:
    assert refusal(data, "a.png").startswith("a.png: is not an image of a known kind (JPEG,")


def test_empty_missing_and_other_things_than_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.png").touch()
    (tmp_path / "loop.png").symlink_to("loop.png")
    mkfifo(tmp_path / "pipe.png")
    assert refusal(b"", "x") == "x: is empty"
    assert refusal(tmp_path / "empty.png") == f"{tmp_path}/empty.png: is empty"
    assert refusal(tmp_path / "gone.png").endswith("gone.png: no such file or directory")
    assert refusal(tmp_path) == f"{tmp_path}: is not a file"
    assert refusal(tmp_path / "pipe.png").endswith("is not a file")
    assert refusal(tmp_path / "loop.png").endswith("loop.png: too many levels of symbolic links")
    assert refusal(tmp_path / "nul\0.png")
    (tmp_path / "secret.png").write_bytes(encoded(quadrants(), "PNG"))

    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert refusal(tmp_path / "secret.png").endswith("secret.png: permission denied")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF"])
def test_half_a_file_is_refused(kind: str) -> None:
    data = encoded(noise(64, 64), kind)
    assert refusal(data[: len(data) // 2], "half").startswith("half: is ")


@pytest.mark.parametrize("width", [8001, 12_000, 40_000, 2**31 - 1])
def test_too_many_pixels_are_refused_by_the_header_alone(width: int) -> None:
    assert "pixels" in refusal(png(width, 8000, 8, 2, b""), "bomb.png")


def test_too_many_pixels_in_an_array() -> None:
    with pytest.raises(Unreadable, match="more than 64,000,000"):
        decode(np.broadcast_to(np.uint8(0), (8001, 8000)), 8)


def test_too_many_bytes(tmp_path: Path) -> None:
    (tmp_path / "huge.jpg").touch()
    truncate(tmp_path / "huge.jpg", module.MAX_BYTES + 1)
    assert refusal(tmp_path / "huge.jpg").endswith("has 256,000,001 bytes, more than 256,000,000")


def test_a_compressed_text_bomb_in_a_png_is_refused() -> None:
    text = b"Comment\0\0" + zlib.compress(bytes(80_000_000), 9)
    chunk = struct.pack(">I", len(text)) + b"zTXt" + text + struct.pack(">I", zlib.crc32(b"zTXt" + text))
    data = encoded(quadrants(), "PNG")
    assert refusal(data[:33] + chunk + data[33:], "text.png").startswith("text.png: is damaged")


VALID = {kind: encoded(noise(20, 20), kind) for kind in ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")}
VALID["lzw TIFF"] = encoded(noise(20, 20), "TIFF", compression="tiff_lzw")
VALID["turned JPEG"] = encoded(
    noise(20, 20), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
)


@given(
    st.sampled_from(sorted(VALID)),
    st.floats(0, 1, exclude_max=True),
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255))),
)
def test_damage_gives_a_picture_or_a_reason(kind: str, kept: float, flips: list[tuple[float, int]]) -> None:
    data = bytearray(VALID[kind])
    for where, bits in flips:
        data[int(where * (len(data) - 1))] ^= bits
    for damaged in (bytes(data), bytes(data[: int(kept * len(data))])):
        try:
            assert decode(damaged, 8).shape == (8, 8, 3)
        except Unreadable:
            continue


@given(st.binary(max_size=200), st.sampled_from(sorted(VALID)))
def test_garbage_after_a_magic_number(garbage: bytes, kind: str) -> None:
    refusal(VALID[kind][:8] + garbage)


# Manners


def test_a_reason_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(Unreadable("a.png", "is empty")))
    assert (error.name, error.reason, str(error)) == ("a.png", "is empty", "a.png: is empty")


def test_nothing_of_the_process_is_changed() -> None:
    before = warnings.filters[:], ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(lambda data: decode(data, 8), [VALID["PNG"], VALID["TIFF"]] * 50))) == 100
    assert (warnings.filters[:], ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS) == before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.jpg", True),
        ("A.JPEG", True),
        ("b.Tiff", True),
        ("c.c.png", True),
        (".cache/data/a.webp", True),
        ("a.txt", False),
        ("png", False),
        (".jpg", False),
        ("._a.jpg", False),
        (".hidden.png", False),
        ("__MACOSX/a/b.jpg", False),
        ("Thumbs.db", False),
        (".DS_Store", False),
        ("a.jpg.part", False),
        ("a.pdf", False),
    ],
)
def test_which_files_count_as_images(path: str, expected: bool) -> None:
    assert is_image_file(Path(path)) is expected


def test_suffixes_are_lower_case() -> None:
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in IMAGE_SUFFIXES)
