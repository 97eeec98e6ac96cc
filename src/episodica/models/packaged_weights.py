"""Pretrained weights that a package of the Python registry carries: found, checked and kept as safetensors.

The file in the package is a pickle. It is read once, as tensors only and after its digest was checked; what is kept in
the cache is checked by the digest of its tensors, so that who can write there cannot change the weights unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path

from episodica.errors import InputError, not_installed
from episodica.files.atomic import write_atomically
from episodica.files.cache_folder import cache_folder
from episodica.lazy_torch import Tensor, torch


@dataclass(frozen=True)
class PackagedWeights:
    package: str  # as it is installed
    file: str  # in it
    sha256: str  # of that file
    content: str  # digest of the tensors

    def tensors(self) -> dict[str, Tensor]:
        """From the cache or, where they are not there or not what they were, from the package; in the file's order."""
        from safetensors.torch import save

        kept = cache_folder() / "weights" / f"{self.package}-{self.content[:16]}.safetensors"
        found = self._kept(kept)
        if found is not None:
            return found
        found = self._packaged()
        numbered = {f"{place:04d} {name}": tensor for place, (name, tensor) in enumerate(found.items())}
        try:
            write_atomically(kept, lambda part: part.write(save(numbered)))
        except OSError as error:
            raise InputError(
                f"cannot write {kept}: {error.strerror}; make room there, or set EPISODICA_CACHE to another folder"
            ) from None
        return found

    def installed(self) -> bool:
        return self._path() is not None

    def _kept(self, path: Path) -> dict[str, Tensor] | None:
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            numbered = load(path.read_bytes())
        except (FileNotFoundError, SafetensorError):
            return None
        found = {name.partition(" ")[2]: numbered[name] for name in sorted(numbered)}  # safetensors keeps no order
        return found if digest(found) == self.content else None

    def _packaged(self) -> dict[str, Tensor]:
        path = self._path()
        if path is None:
            raise not_installed(f"the weights are in the package {self.package}", "photos")
        blob = path.read_bytes()
        if sha256(blob).hexdigest() != self.sha256:
            raise InputError(
                f"{path} is not the file that {self.package} was published with: install that package anew"
            )
        found: dict[str, Tensor] = torch.load(BytesIO(blob), map_location="cpu", weights_only=True)
        found = {name: tensor.contiguous() for name, tensor in found.items()}
        assert digest(found) == self.content, f"{self.package}: {digest(found)}"
        return found

    def _path(self) -> Path | None:
        try:
            path = Path(str(distribution(self.package).locate_file(self.file)))
        except PackageNotFoundError:
            return None
        return path if path.is_file() else None


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Of names, types, shapes and bytes in their order, whatever the file they lie in."""
    content = sha256()
    for name, tensor in tensors.items():
        content.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        content.update(tensor.numpy().tobytes())
    return content.hexdigest()
