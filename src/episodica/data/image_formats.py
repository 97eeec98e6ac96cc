"""Which files are images, and what opens them.

Pillow opens most kinds, AVIF among them where it was built with it. HEIC, as phones write it, takes the package
pillow-heif. Which kind an image is of is read from its bytes; names only tell which files of a folder are meant.
"""

from io import BytesIO
from pathlib import Path
from typing import IO

from PIL import Image, features
from PIL.ImageFile import ImageFile

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")  # and AVIF and HEIC, see `open_encoded`
IMAGE_SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
    | {".avif", ".heic", ".heif", ".hif"}
)  # of files that are read
UNREAD_SUFFIXES = frozenset(
    {".3fr", ".arw", ".cr2", ".cr3", ".dng", ".iiq", ".nef", ".orf", ".pef", ".raf", ".raw", ".rw2", ".srw"}
    | {".dcm", ".eps", ".exr", ".hdr", ".ico", ".j2k", ".jp2", ".jxl", ".jxr", ".pbm", ".pcx", ".pgm", ".ppm", ".psd"}
    | {".svg", ".svgz", ".tga", ".xcf"}
)  # of files that are images as well
AVIF = frozenset({b"avif", b"avis"})
HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"})
LONGEST_BRANDS = 16 + 4 * 32  # bytes; files have a handful


class NotInstalled(Exception):
    """What it takes to read an image, from where its name is not known."""


def is_image_file(path: Path) -> bool:
    """Whether a file in a folder is meant as an image, by its name; hidden files and what macOS leaves are not."""
    return path.suffix.lower() in IMAGE_SUFFIXES and _is_shown(path)


def is_unread_image_file(path: Path) -> bool:
    """Whether it is an image of a kind that is not read."""
    return path.suffix.lower() in UNREAD_SUFFIXES and _is_shown(path)


def _is_shown(path: Path) -> bool:
    return not path.name.startswith(".") and "__MACOSX" not in path.parts


def open_encoded(data: bytes) -> ImageFile:
    """With the size that it declares, and no pixel decoded."""
    return open_image(BytesIO(data))


def open_image(file: IO[bytes]) -> ImageFile:
    """As `open_encoded`, from a file of which little more than the header is read."""
    brands = _brands(file.read(LONGEST_BRANDS))
    file.seek(0)
    if brands & AVIF:
        if not features.check("avif"):
            raise NotInstalled("is an AVIF image, which the installed Pillow does not read: it was built without")
        return _opened(file, "AVIF")
    if brands & HEIC:
        try:
            from pillow_heif.as_plugin import HeifImageFile
        except ImportError:
            raise NotInstalled("is a HEIC image, and reading it takes pip install 'episodica[photos]'") from None
        return HeifImageFile(file)  # registering it would change Pillow for the whole process
    return _opened(file, *FORMATS)


def _opened(file: IO[bytes], *formats: str) -> ImageFile:
    picture = Image.open(file, formats=formats)
    assert isinstance(picture, ImageFile)
    return picture


def _brands(data: bytes) -> set[bytes]:
    """Of a file made of boxes, the names of what it complies with: they stand in its first box, `ftyp`."""
    if data[4:8] != b"ftyp":
        return set()
    end = min(int.from_bytes(data[:4], "big"), len(data))
    return {data[8:12], *(data[i : i + 4] for i in range(16, end - 3, 4))}
