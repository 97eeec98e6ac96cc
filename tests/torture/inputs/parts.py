"""Files that are made of parts, taken apart and put together again in a way that nobody meant: lengths and checksums
are right, so that readers get far."""

import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from torture.inputs.damage import LONGEST, damaged

Part = tuple[bytes, bytes]  # what it is, and its content
PNG, RIFF = b"\x89PNG\r\n\x1a\n", 12  # the signature; the bytes of a head
SOI, SOS, EOI = b"\xff\xd8", 0xDA, b"\xff\xd9"  # of a JPEG


class Container(NamedTuple):
    split: Callable[[bytes], list[Part]]
    join: Callable[[list[Part]], bytes]


@st.composite
def reassembled(draw: DrawFn, whole: SearchStrategy[bytes], container: Container) -> bytes:
    """With parts that are left out, doubled, exchanged, renamed or damaged inside."""
    parts = container.split(draw(whole))
    for _ in range(draw(st.integers(1, 4))):
        if not parts:
            break
        at = draw(st.integers(0, len(parts) - 1))
        name, content = parts[at]
        match draw(st.sampled_from(["damaged", "damaged", "left out", "doubled", "moved", "renamed"])):
            case "damaged":
                parts[at] = name, draw(damaged(st.just(content), 3))
            case "left out":
                del parts[at]
            case "doubled" if len(content) < LONGEST // 2_000:
                parts[at:at] = [parts[at]] * draw(st.sampled_from([1, 3, 200, 2_000]))
            case "moved":
                parts.insert(draw(st.integers(0, len(parts) - 1)), parts.pop(at))
            case _:
                parts[at] = draw(st.sampled_from(parts))[0], content
    return container.join(parts)


def _split_png(data: bytes) -> list[Part]:
    parts, at = [], len(PNG)
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        parts.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += length + 12
    return parts


def _join_png(parts: list[Part]) -> bytes:
    return PNG + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )


def _split_jpeg(data: bytes) -> list[Part]:
    """The data of a scan belongs to the part that begins it."""
    parts, at = [], len(SOI)
    while at < len(data) - len(EOI):
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == SOS:
            while data[end] != 0xFF or data[end + 1] == 0 or 0xD0 <= data[end + 1] <= 0xD7:
                end += 1
        parts.append((data[at : at + 2], data[at + 4 : end]))
        at = end
    return parts


def _join_jpeg(parts: list[Part]) -> bytes:
    def length(name: bytes, content: bytes) -> int:
        return 8 + 2 * (content[0] if content else 0) - 2 if name[1] == SOS else len(content) + 2

    marked = (name + struct.pack(">H", length(name, content) & 0xFFFF) + content for name, content in parts)
    return SOI + b"".join(marked) + EOI


def _split_riff(data: bytes) -> list[Part]:
    parts, at = [], RIFF
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 4)
        parts.append((data[at : at + 4], data[at + 8 : at + 8 + length]))
        at += 8 + length + length % 2
    return parts


def _join_riff(parts: list[Part]) -> bytes:
    body = b"WEBP" + b"".join(
        name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2) for name, content in parts
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _split_boxes(data: bytes) -> list[Part]:
    parts, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        end = at + length if length else len(data)
        parts.append((data[at + 4 : at + 8], data[at + 8 : end]))
        at = end
    return parts


def _join_boxes(parts: list[Part]) -> bytes:
    return b"".join(struct.pack(">I", len(content) + 8) + name + content for name, content in parts)


CONTAINERS = {
    "PNG": Container(_split_png, _join_png),
    "JPEG": Container(_split_jpeg, _join_jpeg),
    "WEBP": Container(_split_riff, _join_riff),
    "AVIF": Container(_split_boxes, _join_boxes),
    "HEIF": Container(_split_boxes, _join_boxes),
}
