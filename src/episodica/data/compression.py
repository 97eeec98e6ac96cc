"""Images kept compressed, so that a memory of the same bytes holds many more of them.

All images that are trained on go through it, new ones too: else a network could tell the new from the kept by what
compression leaves behind. What is counted is what differs from image to image, with two bytes for its length: headers
and tables that all images of one quality share would be stored once.

AVIF needs far fewer bytes than JPEG for the same error, and keeps colours at full resolution here, which JPEG halves.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
from PIL import Image, features

from episodica.data.store import ImageStore
from episodica.errors import InputError
from episodica.lazy_torch import Tensor, torch

LENGTH: Final = 2  # bytes that say how long an image is
START_OF_SCAN, MARKER, END = 0xDA, 2, 2  # the last header, and the bytes of a marker and of the end of a file
BOX = 8  # bytes before what is in a box of an AVIF file: its length, with them, and its name


def jpeg_payload(data: bytes) -> int:
    """The bytes of a JPEG file that are the image itself: after its headers, without the marker at its end."""
    place = MARKER  # after the start of the image
    while True:
        kind, length = data[place + 1], int.from_bytes(data[place + MARKER : place + MARKER + 2], "big")
        place += MARKER + length
        if kind == START_OF_SCAN:
            return len(data) - place - END


def avif_payload(data: bytes) -> int:
    """The bytes of an AVIF file that are the image itself: those in its box of media data."""
    place = 0
    while True:
        length = int.from_bytes(data[place : place + 4], "big")
        assert length >= BOX, "a file of boxes that say how long they are, with one of media data among them"
        if data[place + 4 : place + BOX] == b"mdat":
            return length - BOX
        place += length


@dataclass(frozen=True)
class Codec:
    """How Pillow writes an image, and how many bytes of the file are its own."""

    format: str
    payload: Callable[[bytes], int]
    options: Mapping[str, Any]


CODECS: Final = {
    "jpeg": Codec("JPEG", jpeg_payload, {}),
    "avif": Codec("AVIF", avif_payload, {"subsampling": "4:4:4", "speed": 8, "max_threads": 1}),
}


class CompressedStore(ImageStore):
    """A store whose images were compressed in between, each when it is first asked for, and then kept as decoded."""

    def __init__(self, images: np.ndarray, codec: str, quality: int) -> None:
        super().__init__(images)
        if codec == "avif" and not features.check("avif"):
            raise InputError("this build of Pillow has no AVIF: install Pillow's own wheel, or set memory.codec jpeg")
        self.codec, self.quality = CODECS[codec], quality
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
            Image.fromarray(image).save(stored, self.codec.format, quality=self.quality, **self.codec.options)
            self._bytes[row] = self.codec.payload(stored.getvalue()) + LENGTH
            with Image.open(stored) as kept:
                self._decoded[row] = np.asarray(kept)
