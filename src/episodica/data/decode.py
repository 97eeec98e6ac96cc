"""Any image as a person sees it: upright, in RGB, a square of the wanted size."""

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.Image import Resampling
from PIL.JpegImagePlugin import JpegImageFile

from episodica.data.image_formats import FORMATS, NotInstalled, open_encoded
from episodica.data.image_limits import TooMuch, check_declared, check_pixels, is_reducible

MAX_PIXELS = 64_000_000
MAX_REDUCED_PIXELS = 256_000_000  # of a JPEG that is decoded at a fraction of its size
MAX_BYTES = 256_000_000

AHEAD = 256  # images decoded before the first of them is taken

DRAFT = 2  # times the wanted side that a JPEG is at least decoded at, where that is quicker

_SILENCING = RLock()

Encoded = Path | bytes | memoryview | np.ndarray | Image.Image


class Unreadable(ValueError):
    """An image that cannot be decoded: which one, and why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class _Refused(Exception):
    """The reason, from where the name is not known."""


@contextmanager
def _silence() -> Iterator[None]:
    """Pillow's warnings ignored. That swaps the filters of the whole process, so one thread does it at a time."""
    with _SILENCING, warnings.catch_warnings(action="ignore"):
        yield


def decode_in_parallel(
    images: Sequence[Encoded] | np.ndarray,
    size: int,
    name_of: Callable[[int], str],
    *,
    quickly: bool = False,
    threads: int | None = None,
) -> Iterator[np.ndarray | Unreadable]:
    """Each image in order, or why it cannot be read; by all cores, a bounded number ahead. `quickly`: see `decode`."""

    def attempt(i: int) -> np.ndarray | Unreadable:
        try:
            return _decode(images[i], size, name_of(i), quickly=quickly)
        except Unreadable as error:
            return error

    with _silence(), ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        waiting: deque[Future[np.ndarray | Unreadable]] = deque()
        try:
            for i in range(len(images)):
                waiting.append(pool.submit(attempt, i))
                if len(waiting) == AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # who stops asking does not wait for the rest
                future.cancel()


def decode(
    image: Encoded, size: int, name: str | None = None, max_pixels: int = MAX_PIXELS, *, quickly: bool = False
) -> np.ndarray:
    """uint8 [size, size, 3]: the shorter side resized to `size`, the middle cut out, transparency over white.

    Bicubic with antialiasing: sharper than bilinear, and at the hard edges of drawings it rings less than Lanczos.
    An image of that size already keeps every pixel. Colour profiles are not applied. `quickly` decodes a JPEG that is
    much larger at a half, a quarter or an eighth of its size: several times as fast, and a few levels of 255 different.
    So is a JPEG with more than `max_pixels`, which for all others is the limit.
    """
    called = name or (str(image) if isinstance(image, Path) else "image")
    with _silence():
        return _decode(image, size, called, max_pixels, quickly=quickly)


def content(path: Path) -> bytes:
    """Of a file that is decoded elsewhere. What cannot be read is `Unreadable`, as `decode` would have it."""
    try:
        return _encoded(path)
    except Exception as error:
        raise Unreadable(str(path), _reason(error)) from error


def _decode(image: Encoded, size: int, name: str, max_pixels: int = MAX_PIXELS, *, quickly: bool = False) -> np.ndarray:
    if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.shape == (size, size, 3):
        return image.copy()
    try:
        picture = _rgb(_picture(image, max_pixels, DRAFT * size, quickly=quickly))
    except Exception as error:  # Pillow's readers let through whatever their parsing stumbles over
        raise Unreadable(name, _reason(error)) from error
    side = min(picture.size)
    left, top = ((length - side) // 2 for length in picture.size)
    middle = (left, top, left + side, top + side)
    # The gap averages a large picture before it is resampled: several times as fast, within a level or two of 255.
    return np.array(picture.resize((size, size), Resampling.BICUBIC, box=middle, reducing_gap=3.0))


def _picture(image: Encoded, max_pixels: int, enough: int, *, quickly: bool) -> Image.Image:
    """A shorter side of `enough` pixels will do."""
    match image:
        case np.ndarray():
            return _bounded(_from_array(image), max_pixels)
        case Image.Image():
            return _upright(_bounded(image, max_pixels).copy())
        case _:
            return _upright(_opened(_encoded(image), max_pixels, enough, quickly=quickly))


def _reason(error: Exception) -> str:
    match error:
        case _Refused() | TooMuch() | NotInstalled():
            return str(error)
        case UnidentifiedImageError():
            return f"is not an image of a known kind ({', '.join(FORMATS)}, AVIF, HEIC)"
        case Image.DecompressionBombError():
            return f"has more than {MAX_PIXELS:,} pixels"
        case OSError(strerror=str(problem)):
            return problem.lower()
        case _:
            return f"is damaged or of an unknown variant ({str(error) or type(error).__name__})"


def _encoded(image: Path | bytes | memoryview) -> bytes:
    if isinstance(image, Path):
        length = image.stat().st_size
        if not image.is_file():  # reading a pipe would wait for ever
            raise _Refused("is not a file")
    else:
        length = memoryview(image).nbytes
    if not 0 < length <= MAX_BYTES:
        raise _Refused(f"has {length:,} bytes, more than {MAX_BYTES:,}" if length else "is empty")
    return image.read_bytes() if isinstance(image, Path) else bytes(image)


def _from_array(array: np.ndarray) -> Image.Image:
    if array.dtype != np.uint8 or array.size == 0 or array.ndim not in (2, 3) or array.shape[2:] not in ((), (3,)):
        raise _Refused(f"is an array {array.dtype} {list(array.shape)}, not uint8 [H, W] or [H, W, 3]")
    return Image.fromarray(array)


def _opened(data: bytes, max_pixels: int, enough: int, *, quickly: bool) -> Image.Image:
    picture = open_encoded(data)
    reducible = is_reducible(picture, data)
    check_declared(picture, data, max(max_pixels, MAX_REDUCED_PIXELS) if reducible else max_pixels)
    if isinstance(picture, JpegImageFile) and (quickly or picture.width * picture.height > max_pixels):
        picture.draft(None, (enough, enough))
    return _bounded(picture, max_pixels)


def _bounded(picture: Image.Image, max_pixels: int) -> Image.Image:
    check_pixels(picture.width, picture.height, max_pixels)
    return picture


def _upright(picture: Image.Image) -> Image.Image:
    picture.load()
    with suppress(Exception):  # torn metadata spoils no pixel
        ImageOps.exif_transpose(picture, in_place=True)
    return picture


def _rgb(picture: Image.Image) -> Image.Image:
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        picture = Image.fromarray(_eight_bits(np.asarray(picture)))
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    picture = picture.convert("RGBA")
    paper = Image.new("RGB", picture.size, "white")
    paper.paste(picture, mask=picture.getchannel("A"))
    return paper


def _eight_bits(values: np.ndarray) -> np.ndarray:
    """16 bits by their full range; wider numbers, of which nothing says what is white, from their least to greatest."""
    if values.dtype.itemsize == 2:
        return ((values.astype(np.uint32) + 128) // 257).astype(np.uint8)
    finite = values[np.isfinite(values)]
    least, greatest = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    known = np.nan_to_num(values.astype(np.float64), nan=least, posinf=greatest, neginf=least)
    return np.rint((known - least) * 255 / (greatest - least or 1)).astype(np.uint8)
