"""Images kept as JPEG, so that a memory of the same bytes holds many more of them.

All images that are trained on go through it, new ones too: else a network could tell the new from the kept by what
compression leaves behind. What is counted is what differs from image to image, with two bytes for its length: the
tables that all images of one quality share would be stored once.
"""

from io import BytesIO
from typing import Final

import numpy as np
from PIL import Image

from episodica.data.store import ImageStore
from episodica.lazy_torch import Tensor, torch

LENGTH: Final = 2  # bytes that say how long an image is
START_OF_SCAN, MARKER, END = 0xDA, 2, 2  # the last header, and the bytes of a marker and of the end of a file


class JpegStore(ImageStore):
    """A store whose images were JPEG in between; each is compressed when it is first asked for, and then kept."""

    def __init__(self, images: np.ndarray, quality: int) -> None:
        super().__init__(images)
        self.quality = quality
        self._decoded = np.empty_like(images, subok=False)  # takes room as it is filled
        self._bytes = np.zeros(len(images), np.int64)

    @property
    def plain_bytes(self) -> int:
        """What an image takes without compression."""
        return self.images[0].nbytes

    def read(self, rows: Tensor) -> Tensor:
        self._compress(rows)
        return torch.from_numpy(self._decoded[rows.numpy()])

    def bytes(self, rows: Tensor) -> Tensor:
        """What each image takes. [M]"""
        self._compress(rows)
        return torch.from_numpy(self._bytes[rows.numpy()])

    def _compress(self, rows: Tensor) -> None:
        wanted = np.unique(rows.numpy())
        new = wanted[self._bytes[wanted] == 0]
        if not len(new):
            return
        for row, image in zip(new, super().read(torch.from_numpy(new)).numpy(), strict=True):
            stored = BytesIO()
            Image.fromarray(image).save(stored, "JPEG", quality=self.quality)
            self._bytes[row] = payload(stored.getvalue()) + LENGTH
            with Image.open(stored) as kept:
                self._decoded[row] = np.asarray(kept)


def payload(data: bytes) -> int:
    """The bytes of a JPEG file that are the image itself: after its headers, without the marker at its end."""
    place = MARKER  # after the start of the image
    while True:
        kind, length = data[place + 1], int.from_bytes(data[place + MARKER : place + MARKER + 2], "big")
        place += MARKER + length
        if kind == START_OF_SCAN:
            return len(data) - place - END
