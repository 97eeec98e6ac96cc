"""Small files that cost much to decode."""

import io
import struct
import zlib

from PIL import Image

DATA = 600  # where the pixels of a TIFF begin


def tiff(tags: dict[int, int], data: bytes) -> bytes:
    """RGB, deflated, with these tags beside the usual ones; `data` begins at `DATA`."""
    tags = {259: 8, 262: 2, 277: 3} | tags
    entries = {tag: struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items()}
    entries[258] = struct.pack("<HHII", 258, 3, 3, DATA - 6)
    head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(entries[tag] for tag in sorted(entries))
    return (head + bytes(4)).ljust(DATA - 6, b"\0") + struct.pack("<HHH", 8, 8, 8) + data


def tiff_with_a_tile(side: int) -> bytes:
    """An image of 32 x 32 pixels in one tile of side x side."""
    data = zlib.compress(bytes(side * 3), 9) if side > 6_000 else zlib.compress(bytes(side * side * 3), 9)
    return tiff({256: 32, 257: 32, 322: side, 323: side, 324: DATA, 325: len(data)}, data)


def jpeg_with_scans(side: int, count: int) -> bytes:
    """A progressive JPEG whose last scan comes again and again."""
    file = io.BytesIO()
    Image.new("L", (side, side)).save(file, "JPEG", progressive=True)
    whole = file.getvalue()
    return whole[:-2] + whole[whole.rindex(b"\xff\xda") : -2] * count + b"\xff\xd9"


def png_of_size(side: int) -> bytes:
    """A PNG of some hundred bytes whose header promises side x side pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(9999))) + chunk(b"IEND", b"")
    )
