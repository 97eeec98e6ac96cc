"""What an encoded image says about itself, held against limits before any pixel is decoded.

The size in a header is not all that decoding costs. A TIFF is made of strips or tiles, each decoded as a whole, and one
tile may be far larger than the image it belongs to. A progressive JPEG is refined scan by scan, every scan passes over
all pixels, and a scan that changes nothing has some forty bytes. AVIF and HEIC are put together from pictures, each of
which declares its size.
"""

import re
import struct

from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.TiffImagePlugin import TiffImageFile

MOST_SCANS = 100  # of a JPEG; encoders write a dozen
START_OF_SCAN = b"\xff\xda"  # within the data of a scan no such pair occurs
WIDTH, HEIGHT, TILE_WIDTH, TILE_HEIGHT, STRIPS, TILES = 256, 257, 322, 323, 273, 324  # tags of a TIFF
PART_OF_BOXES = re.compile(rb"ispe\0\0\0\0(.{8})", re.DOTALL)  # width and height of one picture in AVIF and HEIC


class TooMuch(Exception):
    """Which limit an image exceeds, from where its name is not known."""


def check_declared(picture: ImageFile, encoded: bytes, max_pixels: int) -> None:
    """`picture` was opened from `encoded`, and not loaded."""
    check_pixels(picture.width, picture.height, max_pixels)
    parts = 1
    for box in filter(None, (tile[1] for tile in picture.tile)):
        check_pixels(box[2] - box[0], box[3] - box[1], max_pixels, "a part of ")
    if isinstance(picture, TiffImageFile):
        parts = _check_tiff(picture, max_pixels)
    if picture.format in ("AVIF", "HEIF"):
        for part in PART_OF_BOXES.findall(encoded):
            check_pixels(*struct.unpack(">II", part), max_pixels, "a part of ")
    if picture.format in ("JPEG", "MPO", "TIFF"):
        scans = encoded.count(START_OF_SCAN)
        if scans > max(MOST_SCANS, 2 * parts):
            raise TooMuch(f"has {scans:,} scans, more than {MOST_SCANS}; save it as a plain JPEG")


def is_reducible(picture: ImageFile, encoded: bytes) -> bool:
    """Whether it is a JPEG that is decoded row by row: at a fraction of its size, it takes that fraction of memory.

    One whose scans bring a part of the data each is held in memory as a whole, whatever the size wanted.
    """
    if not isinstance(picture, JpegImageFile) or "progressive" in picture.info:
        return False
    place = 2
    while encoded[place : place + 1] == b"\xff":  # one segment after another: a marker, its length, its content
        if encoded[place : place + 2] == START_OF_SCAN:
            return encoded[place + 4] == picture.layers
        place += 2 + int.from_bytes(encoded[place + 2 : place + 4], "big")
    return False


def check_pixels(width: int, height: int, most: int, part: str = "") -> None:
    if width * height > most:
        raise TooMuch(f"has {part}{width} x {height} pixels, more than {most:,}")


def _check_tiff(picture: TiffImageFile, max_pixels: int) -> int:
    """The number of its strips or tiles."""
    tags = picture.tag_v2
    width, height = tags.get(TILE_WIDTH), tags.get(TILE_HEIGHT)
    if width is not None or height is not None:
        if not isinstance(width, int) or not isinstance(height, int):
            raise TooMuch("has tiles of an unknown size")
        check_pixels(width, height, max_pixels, "a tile of ")
    return max(len(places) if isinstance(places, tuple) else 1 for places in map(tags.get, (STRIPS, TILES)))
