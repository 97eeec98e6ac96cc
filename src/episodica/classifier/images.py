"""Anything people have as an image becomes a square of bytes: files, encoded bytes, PIL images, arrays, tensors."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from episodica.data.decode import Encoded, Unreadable, decode
from episodica.errors import InputError

Picture = str | Path | bytes | memoryview | Image.Image | np.ndarray | Tensor


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


def encoded(image: Picture, name: str | None = None) -> Encoded:
    """The same as something that the decoder takes. Tensors are [3, H, W] or [H, W], arrays [H, W, 3] or [H, W];
    floats run from 0 to 1."""
    match image:
        case str():
            return Path(image)
        case Path() | bytes() | memoryview() | Image.Image():
            return image
        case np.ndarray():
            return _bytes(image, name)
        case Tensor():
            planes = image.detach().cpu()
            return _bytes((planes.permute(1, 2, 0) if planes.ndim == 3 else planes).numpy(), name)
        case _:
            raise InputError(
                f"{name or 'image'}: is of type {type(image).__name__}; give a path, bytes, a PIL image, an array or a "
                "tensor"
            )


def _bytes(array: np.ndarray, name: str | None) -> np.ndarray:
    if not np.issubdtype(array.dtype, np.floating):
        return array
    if array.size and not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
        raise InputError(f"{name or 'image'}: floats must lie between 0 and 1; divide by 255, or give uint8")
    return np.rint(array * 255).astype(np.uint8)
