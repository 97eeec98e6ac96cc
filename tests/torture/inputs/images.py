"""Images of every format that is read: whole, damaged, put together wrongly, and by headers that say anything."""

import io
import struct
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pillow_heif
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from PIL import Image

from episodica.data.decode import Unreadable, decode
from episodica.serve.limits import Limits
from torture.inputs.damage import damaged, numbers
from torture.inputs.kind import MIB, Kind, reading
from torture.inputs.parts import CONTAINERS, reassembled

SIDE = 32  # pixels of the square that is asked for
VARIANTS: dict[str, list[dict[str, object]]] = {  # how each format may be written
    "JPEG": [{}, {"progressive": True}, {"quality": 5, "optimize": True}, {"restart_marker_blocks": 1}],
    "PNG": [{}, {"optimize": True}, {"bits": 2}, {"save_all": True}],
    "WEBP": [{}, {"lossless": True}, {"save_all": True}],
    "BMP": [{}],
    "GIF": [{}, {"save_all": True}, {"interlace": 0}],
    "TIFF": [{}, *({"compression": name} for name in ("tiff_lzw", "tiff_deflate", "jpeg", "packbits", "group4"))],
    "AVIF": [{}, {"quality": 100}],
    "HEIF": [{}],
}  # fmt: skip
MODES = {
    "JPEG": ["RGB", "L", "CMYK"],
    "PNG": ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"],
    "WEBP": ["RGB", "RGBA"],
    "BMP": ["RGB", "L", "P", "1", "RGBA"],
    "GIF": ["L", "P", "RGB"],
    "TIFF": ["RGB", "RGBA", "L", "1", "P", "I;16", "I", "F", "CMYK"],
    "AVIF": ["RGB", "RGBA"],
    "HEIF": ["RGB", "RGBA"],
}
SIZES = [(1, 1), (2, 37), (48, 32), (300, 200)]


@cache
def written(form: str, variant: int, mode: str, size: tuple[int, int], turned: int) -> bytes:
    """A valid file; where the format has no such variant of the mode, a plain one."""
    rng = np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), np.uint8)).resize(size)
    picture = picture.convert("L").convert(mode) if mode in ("I;16", "I", "F") else picture.convert(mode)
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = turned
    options = dict(VARIANTS[form][variant])
    if options.get("save_all"):
        options["append_images"] = [picture.rotate(90), picture]
    if form not in ("BMP", "GIF"):
        options["exif"] = exif.tobytes()
    try:
        _save(picture, file, form, options)
    except (OSError, ValueError, RuntimeError, KeyError):  # not every mode goes with every variant
        file = io.BytesIO()
        _save(picture.convert("RGB"), file, form, {})
    return file.getvalue()


def _save(picture: Image.Image, file: io.BytesIO, form: str, options: dict[str, object]) -> None:
    if form == "HEIF":
        pillow_heif.from_pillow(picture).save(file, **options)
    else:
        picture.save(file, form, **options)  # type: ignore[arg-type]


def whole(form: str) -> SearchStrategy[bytes]:
    variants = st.integers(0, len(VARIANTS[form]) - 1)
    drawn = st.tuples(variants, st.sampled_from(MODES[form]), st.sampled_from(SIZES), st.integers(1, 8))
    return drawn.map(lambda how: written(form, *how))


@st.composite
def png_header(draw: DrawFn) -> bytes:
    """Any size, depth and kind, and data that inflates to more or less than it takes."""
    name_and_size = struct.pack(">II", draw(numbers) & 0x7FFFFFFF, draw(numbers) & 0x7FFFFFFF)
    header = name_and_size + bytes(draw(numbers) & 0xFF for _ in range(5))
    data = zlib.compress(bytes(draw(st.sampled_from([0, 10, 10**4, 10**7]))), 9)
    middle = draw(st.lists(st.tuples(st.sampled_from([b"PLTE", b"tRNS", b"zTXt", b"iCCP", b"acTL"]), st.just(data))))
    return CONTAINERS["PNG"].join([(b"IHDR", header), *middle, (b"IDAT", data), (b"IEND", b"")])


@st.composite
def bmp_header(draw: DrawFn) -> bytes:
    size = draw(st.sampled_from([12, 40, 56, 64, 108, 124]) | numbers)
    fields = b"".join(struct.pack("<I", draw(numbers) & 0xFFFFFFFF) for _ in range(draw(st.integers(0, 12))))
    return (
        struct.pack("<2sIII", b"BM", draw(numbers) & 0xFFFFFFFF, 0, draw(numbers) & 0xFFFFFFFF)
        + struct.pack("<I", size & 0xFFFFFFFF)
        + fields
    )


@st.composite
def gif_blocks(draw: DrawFn) -> bytes:
    """Frames of any size and place, and blocks of any length."""
    word = st.builds(lambda number: struct.pack("<H", number & 0xFFFF), numbers)
    data = (
        b"GIF89a"
        + draw(word)
        + draw(word)
        + bytes([draw(st.integers(0, 255)), 0, 0])
        + bytes(draw(st.sampled_from([0, 6, 768])))
    )
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            data += (
                b","
                + b"".join(draw(word) for _ in range(4))
                + bytes([draw(st.integers(0, 255)), draw(st.integers(0, 12))])
            )
        else:
            data += b"!" + bytes([draw(st.sampled_from([0xF9, 0xFE, 0xFF, 0x01]))])
        content = draw(st.binary(max_size=20))
        data += bytes([draw(st.just(len(content)) | st.integers(0, 255))]) + content + b"\0"
    return data + b";"


TIFF_TAGS = [254, 256, 257, 258, 259, 262, 266, 273, 274, 277, 278, 279, 284, 317, 320, 322, 323, 324, 325, 338, 339]


@st.composite
def tiff_tags(draw: DrawFn) -> bytes:
    """Tags of any type, count and value, in directories that may follow one another in a circle."""
    order = draw(st.sampled_from("<>"))
    usual = {256: 8, 257: 8, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 8, 279: 64}
    for tag in draw(st.lists(st.sampled_from(TIFF_TAGS), max_size=6)):
        usual[tag] = draw(numbers) & 0xFFFFFFFF
    odd = draw(st.dictionaries(st.sampled_from([*usual]), st.tuples(st.integers(0, 14), numbers), max_size=3))
    entries = b"".join(
        struct.pack(order + "HHII", tag, *(n & 0xFFFFFFFF for n in odd.get(tag, (4, 1))), value)
        for tag, value in sorted(usual.items())
    )
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(usual))
    return head + entries + struct.pack(order + "I", draw(st.sampled_from([0, 8]) | numbers) & 0xFFFFFFFF) + bytes(100)


@st.composite
def declared_size(draw: DrawFn, form: str) -> bytes:
    """A file of boxes whose pictures say that they are of another size."""
    data = bytearray(draw(whole(form)))
    at = 0
    while (at := data.find(b"ispe", at + 1)) >= 0:
        struct.pack_into(">II", data, at + 8, *(draw(numbers) & 0xFFFFFFFF for _ in range(2)))
    return bytes(data)


BY_GRAMMAR = {
    "PNG": png_header(),
    "BMP": bmp_header(),
    "GIF": gif_blocks(),
    "TIFF": tiff_tags(),
    "AVIF": declared_size("AVIF"),
    "HEIF": declared_size("HEIF"),
}


def hostile(form: str) -> SearchStrategy[bytes]:
    ways = [whole(form), damaged(whole(form))]
    if form in BY_GRAMMAR:
        ways += [BY_GRAMMAR[form], damaged(BY_GRAMMAR[form])]
    if form in CONTAINERS:
        ways += [reassembled(whole(form), CONTAINERS[form])]
    return st.one_of(ways)


def read(data: bytes, place: Path) -> None:
    """As `serve` does, within what one image may cost there."""
    square = decode(data, SIDE, "image", Limits().image_pixels)
    assert square.shape == (SIDE, SIDE, 3)
    assert square.dtype == np.uint8


KINDS = [
    Kind(f"images, {form}", hostile(form), reading(read), (Unreadable,), seconds=10, memory=1024 * MIB)
    for form in VARIANTS
]
