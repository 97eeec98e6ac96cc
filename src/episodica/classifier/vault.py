"""The images that a model keeps: PNG files named by the digest of their bytes, so that damage shows on reading."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from episodica.classifier.images import stacked
from episodica.errors import InputError
from episodica.files.digest import digest_of, is_digest
from episodica.files.door import Folder, Refused

MOST = 2**26  # bytes of an image
ENDING = ".png"


class Vault:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        return self.folder.path / f"{digest}{ENDING}"

    def put(self, image: np.ndarray) -> str:
        """Keep uint8 [S, S, 3] and return its digest. Every pixel comes back as it was."""
        buffer = BytesIO()
        Image.fromarray(np.ascontiguousarray(image)).save(buffer, "PNG")
        digest = digest_of(buffer.getvalue())
        try:
            self.read(digest)
        except InputError:  # it is not here, or not as it should be
            self.folder.write_bytes(f"{digest}{ENDING}", buffer.getvalue())
        return digest

    def take(self, digest: str, source: "Vault") -> str:
        """An image that another one of ours has, as it is there."""
        self.folder.write_bytes(f"{digest}{ENDING}", source.read(digest))
        return digest

    def read(self, digest: str) -> bytes:
        try:
            data = self.folder.read(f"{digest}{ENDING}", MOST)
        except Refused:
            raise
        except OSError:
            data = b""
        if digest_of(data) != digest:
            raise InputError(f"the image {self.path(digest)} of the model is missing or damaged: restore the folder")
        return data

    def load(self, digests: Sequence[str], size: int) -> np.ndarray:
        """uint8 [M, S, S, 3]"""
        return stacked((self.read(digest) for digest in digests), size)

    def keep_only(self, digests: Iterable[str]) -> None:
        """Remove other images; what has no name of ours stays."""
        wanted = set(digests)
        for entry in self.folder.entries():
            if is_image(entry.name) and entry.name.removesuffix(ENDING) not in wanted:
                self.folder.remove_tree(entry.name)


def is_image(name: str) -> bool:
    """Whether a file of this name is ours."""
    return name.endswith(ENDING) and is_digest(name.removesuffix(ENDING))
