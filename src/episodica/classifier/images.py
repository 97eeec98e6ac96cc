"""Images of any kind become squares of bytes."""

from collections.abc import Iterable, Sequence

import numpy as np

from episodica.data.decode import Unreadable, decode
from episodica.data.pictures import Picture, encoded
from episodica.errors import InputError


def pixels(image: Picture, size: int, name: str | None = None) -> np.ndarray:
    """uint8 [size, size, 3]. What cannot be read is refused with its name and the reason."""
    try:
        return decode(encoded(image, name), size, name)
    except Unreadable as error:
        raise InputError(f"{error}; give an image that opens in a viewer") from None


def stacked(images: Iterable[Picture], size: int) -> np.ndarray:
    """uint8 [M, size, size, 3]"""
    return stack_squares([pixels(image, size) for image in images], size)


def stack_squares(squares: Sequence[np.ndarray], size: int) -> np.ndarray:
    """uint8 [M, size, size, 3], also of no image."""
    return np.stack(squares) if squares else np.empty((0, size, size, 3), np.uint8)
