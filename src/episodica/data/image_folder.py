"""People's own images: one sub-folder for each class, in any common image format."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from episodica.data.cache import Source
from episodica.data.dataset import FileDataset, Found
from episodica.data.folder_layouts import class_folders, published_folders, published_source, source_of
from episodica.data.splits import LEAST
from episodica.errors import InputError, listed


class Folder(FileDataset, name="folder"):
    """Your own images, a sub-folder for each class; such folders in train/, val/ and test/ are taken as a split."""

    min_images: Annotated[
        int | None, Field(ge=2, description="leave out classes with fewer images; by default none may have under 2")
    ] = None

    native_size: ClassVar[int] = 84
    where: ClassVar[str] = "your own collection"
    layout: ClassVar[str] = "one sub-folder with images for each class, or such folders in train/, val/ and test/"

    def settings(self) -> dict[str, object]:
        return {"min_images": self.min_images}

    def find(self, folder: Path) -> Found | None:
        parts = published_folders(folder)
        if parts is not None:
            sizes = _sizes(*parts.values())
            kept = {part: self._large_enough(classes, sizes) for part, classes in parts.items()}
            files = [path for part in kept.values() for images in part.values() for path in images]
            return Found(files, lambda: self._noting(published_source(kept, folder), sizes, folder))
        everything = class_folders(folder)
        if len(everything) < 2:  # the only one may hold the classes
            return None
        sizes = _sizes(everything)
        classes = self._large_enough(everything, sizes)
        files = [path for images in classes.values() for path in images]
        return Found(files, lambda: self._noting(self._read(classes, folder), sizes, folder))

    def _large_enough(self, classes: dict[str, list[Path]], sizes: Mapping[str, int]) -> dict[str, list[Path]]:
        return {name: images for name, images in classes.items() if sizes[name] >= (self.min_images or 0)}

    def _read(self, classes: dict[str, list[Path]], folder: Path) -> Source:
        if len(classes) < 4:
            raise InputError(
                f"{folder} has {len(classes)} classes with at least {self.min_images or LEAST} images: there must be "
                "4, two to learn and two unseen ones to test on"
            )
        return source_of(classes)

    def _noting(self, source: Source, sizes: Mapping[str, int], folder: Path) -> Source:
        """Small classes are an error or, where the user has said what small is, named as left out."""
        small = [f"{name} ({size})" for name, size in sizes.items() if size < (self.min_images or LEAST)]
        if small and self.min_images is None:
            raise InputError(
                f"{folder}: an episode takes at least {LEAST} images of a class, but there are fewer of "
                f"{listed(small)}; add some, or leave such classes out with data.min_images = {LEAST}"
            )
        return replace(source, notes=(f"left out, by data.min_images: {listed(small)}",) if small else ())


def _sizes(*parts: Mapping[str, list[Path]]) -> dict[str, int]:
    """Images of each class, in whichever parts they lie."""
    sizes: Counter[str] = Counter()
    for part in parts:
        sizes.update({name: len(images) for name, images in part.items()})
    return sizes
