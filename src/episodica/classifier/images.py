"""Images of any kind become squares of bytes."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from episodica.data.decode import Unreadable, decode
from episodica.data.pictures import Picture, encoded
from episodica.errors import InputError


def pixels(image: Picture, size: int, name: str | None = None) -> Tensor:
    """uint8 [3, size, size]. What cannot be read is refused with its name and the reason."""
    try:
        square = decode(encoded(image, name), size, name)
    except Unreadable as error:
        raise InputError(f"{error}; give an image that opens in a viewer") from None
    return torch.from_numpy(square).permute(2, 0, 1)


def stacked(images: Iterable[Picture], size: int) -> Tensor:
    """uint8 [M, 3, size, size]"""
    return stack_squares([pixels(image, size) for image in images], size)


def stack_squares(squares: Sequence[Tensor], size: int) -> Tensor:
    """uint8 [M, 3, size, size], also of no image."""
    return torch.stack(tuple(squares)) if squares else torch.empty(0, 3, size, size, dtype=torch.uint8)
