"""Anything people have as an image, as something that the decoder takes."""

from pathlib import Path

import numpy as np
from PIL import Image

from episodica.data.decode import Encoded
from episodica.errors import InputError
from episodica.lazy_torch import Tensor, torch

Picture = str | Path | bytes | memoryview | Image.Image | np.ndarray | Tensor


def encoded(image: Picture, name: str | None = None) -> Encoded:
    """Tensors are [3, H, W], [1, H, W] or [H, W], arrays [H, W, 3], [H, W, 1] or [H, W]; floats run from 0 to 1."""
    match image:
        case str():
            return Path(image)
        case Path() | bytes() | memoryview() | Image.Image():
            return image
        case np.ndarray():
            return _bytes(image, name)
        case torch.Tensor():
            planes = image.detach().cpu()
            return _bytes((planes.permute(1, 2, 0) if planes.ndim == 3 else planes).numpy(), name)
        case _:
            raise InputError(
                f"{name or 'image'}: is of type {type(image).__name__}; give a path, bytes, a PIL image, an array or a "
                "tensor"
            )


def _bytes(array: np.ndarray, name: str | None) -> np.ndarray:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if not np.issubdtype(array.dtype, np.floating):
        return array
    if array.size and not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
        raise InputError(
            f"{name or 'image'}: floats must lie between 0 and 1; divide by 255, give uint8, or leave out what "
            "normalises"
        )
    return np.rint(array * 255).astype(np.uint8)
