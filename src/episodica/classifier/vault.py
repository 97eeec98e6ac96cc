"""The images that a model keeps: PNG files named by the digest of their bytes, so that damage shows on reading."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from episodica.classifier.images import stacked
from episodica.errors import InputError
from episodica.files.atomic import write_atomically


class Vault:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        return self.folder / f"{digest}.png"

    def put(self, image: Tensor) -> str:
        """Keep uint8 [3, S, S] and return its digest. Every pixel comes back as it was."""
        buffer = BytesIO()
        Image.fromarray(np.ascontiguousarray(image.permute(1, 2, 0).numpy())).save(buffer, "PNG")
        digest = digest_of(buffer.getvalue())
        if not self.path(digest).exists():
            write_atomically(self.path(digest), lambda part: part.write(buffer.getbuffer()))
        return digest

    def read(self, digest: str) -> bytes:
        try:
            data = self.path(digest).read_bytes()
        except OSError:
            data = b""
        if digest_of(data) != digest:
            raise InputError(f"the image {self.path(digest)} of the model is missing or damaged: restore the folder")
        return data

    def load(self, digests: Sequence[str], size: int) -> Tensor:
        """uint8 [M, 3, S, S]"""
        return stacked((self.read(digest) for digest in digests), size)

    def keep_only(self, digests: Iterable[str]) -> None:
        wanted = set(digests)
        for path in self.folder.glob("*.png"):
            if path.stem not in wanted:
                path.unlink(missing_ok=True)


def digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
