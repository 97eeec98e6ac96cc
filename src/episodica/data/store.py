"""The image store: all images of a data set as one array of bytes, in memory or mapped from a file."""

import mmap
import sys

import numpy as np

from episodica.lazy_torch import Tensor, torch


class ImageStore:
    """Gathers images by row. uint8 [n, H, W, 3], so that a gathered batch is channels-last already."""

    def __init__(self, images: np.ndarray) -> None:
        assert images.dtype == np.uint8
        assert images.ndim == 4
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> int:
        return self.images.shape[1]

    def read(self, rows: Tensor) -> Tensor:
        wanted = rows.numpy()
        if isinstance(self.images, np.memmap):
            fetch(self.images, wanted)
        return torch.from_numpy(self.images[wanted])


def fetch(images: np.memmap, rows: np.ndarray) -> None:
    """Ask the disk for all rows at once, before any is touched.

    Touched one after another, each row would wait for the one before and bring its neighbourhood along: of a set larger
    than memory, hundreds of times the bytes of a step.
    """
    if sys.platform != "win32" and isinstance(images.base, mmap.mmap):
        for start, length in page_ranges(rows, images.offset % mmap.ALLOCATIONGRANULARITY, images[0].nbytes):
            images.base.madvise(mmap.MADV_WILLNEED, start, length)


def page_ranges(rows: np.ndarray, offset: int, row_bytes: int) -> list[tuple[int, int]]:
    """Start and length of what each row takes of the map, from the beginning of a page on."""
    starts = offset + rows.reshape(-1) * row_bytes
    into_page = starts % mmap.PAGESIZE
    return list(zip((starts - into_page).tolist(), (into_page + row_bytes).tolist(), strict=True))
