"""The image store: all images of a data set as one array of bytes, in memory or mapped from a file."""

import json
import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from episodica.errors import InputError
from episodica.records.files import write_atomically


class ImageStore:
    """Gathers images by row. uint8 [n, H, W, 3], so that a gathered batch is channels-last already."""

    def __init__(self, images: np.ndarray) -> None:
        assert images.dtype == np.uint8
        assert images.ndim == 4
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    @property
    def size(self) -> int:
        return self._images.shape[1]

    def read(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self._images[rows.numpy()])


def cache_folder() -> Path:
    """`EPISODICA_CACHE`, or the user's cache folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("EPISODICA_CACHE") or base / "episodica")


def cached(name: str, key: dict[str, Any], build: Callable[[], np.ndarray]) -> np.ndarray:
    """An array built once for each key and mapped from the cache after that; written whole or not at all."""
    digest = blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8).hexdigest()
    path = cache_folder() / f"{name}-{digest}.npy"
    if not _intact(path):
        images = build()
        try:
            write_atomically(path, lambda part: np.save(part, images, allow_pickle=False))
        except OSError as error:
            raise InputError(
                f"cannot write {images.nbytes / 1e6:.0f} MB to the image cache {path.parent}: {error.strerror}; "
                "free some space or set EPISODICA_CACHE to another folder"
            ) from None
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _intact(path: Path) -> bool:
    """Whether the file is whole: its length is what its header says."""
    try:
        np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return False
    return True
