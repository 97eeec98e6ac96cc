"""Data sets that a Python program has as objects: anything with `__len__` and `__getitem__ -> (image, label)`.

Data sets of torch and torchvision are such objects. A run reads them once into the cache, where their content names
them; so its config, its id and its worker processes need no object.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, Protocol, TypeGuard

import numpy as np
from PIL import Image
from pydantic import Field

from episodica.data.cache import (
    REPORTED_EVERY,
    Arrays,
    OnProgress,
    Source,
    fingerprint_of,
    load_or_build,
    scratch_folder,
)
from episodica.data.dataset import Dataset, silent
from episodica.data.decode import Encoded, Unreadable, decode
from episodica.data.pictures import Picture, encoded
from episodica.errors import InputError
from episodica.files.atomic import write_atomically
from episodica.lazy_torch import torch

LARGEST = 512  # pixels of the shorter side that are kept: no model sees more
SIZES = (16, 84)  # the least and the most pixels of a side that a run takes by default

Label = int | str


class Pairs(Protocol):
    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> tuple[Any, Any]: ...


class PassedFromPython(Dataset, name="pairs"):
    """Pairs of image and label that a Python program passes: `episodica.run(recipe, data=dataset)`."""

    fingerprint: Annotated[str | None, Field(description="of the content; `episodica.run` fills it in")] = None

    native_size: ClassVar[int] = SIZES[1]

    def load(self, on_progress: OnProgress = silent) -> Arrays:
        if self.fingerprint is None:
            raise InputError("data.fingerprint is missing: pass the data set in Python, episodica.run(..., data=...)")
        size = self.size or self.native_size
        arrays = load_or_build(self.name, size, {"fingerprint": self.fingerprint}, [], self._gone, on_progress)
        if arrays.fingerprint != self.fingerprint:
            raise self._missing()
        return arrays

    def _gone(self) -> AbstractContextManager[Source]:
        raise self._missing()

    def _missing(self) -> InputError:
        return InputError(
            f"the images with fingerprint {self.fingerprint} are not in the image cache: pass the data set in Python "
            "again, episodica.run(..., data=...)"
        )


def is_pairs(value: object) -> TypeGuard[Pairs]:
    """Whether this is a data set of (image, label) pairs, by its first item."""
    has_items = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    if not has_items or isinstance(value, np.ndarray | torch.Tensor | Mapping):
        return False
    try:
        first = value[0] if len(value) else None  # type: ignore[arg-type,index]
    except KeyError:  # a table, whose items have names
        return False
    return isinstance(first, tuple | list) and len(first) == 2


def read_pairs(dataset: Pairs) -> tuple[list[Picture], list[Label]]:
    """All images, none larger than a model can see, and their labels."""
    images, labels = [], []
    for image, label in _items(dataset):
        images.append(_reduced(image))
        labels.append(label)
    return images, labels


def keep_in_cache(dataset: Pairs, size: int | None = None, on_progress: OnProgress = silent) -> dict[str, Any]:
    """The settings of a run by which it finds this data set from now on."""
    if not is_pairs(dataset):
        raise InputError(f"data is a {type(dataset).__name__}: give an object whose items are (image, label) pairs")
    size = size or _fitting_size(dataset)
    with scratch_folder() as folder:
        source = _squares(dataset, size, folder / "images", on_progress)
        settings = {"fingerprint": fingerprint_of(source.images, source.labels, source.class_names)}  # type: ignore[arg-type]
        load_or_build(PassedFromPython.name, size, settings, [], lambda: nullcontext(source), on_progress)
    return {"data.name": PassedFromPython.name, "data.size": size, "data.fingerprint": settings["fingerprint"]}


def _squares(dataset: Pairs, size: int, path: Path, on_progress: OnProgress) -> Source:
    """Every image decoded into a file, in one pass: nothing says that a second one would give the same."""
    labels: list[Label] = []

    def write(file: IO[bytes]) -> None:
        for i, (image, label) in enumerate(_items(dataset)):
            try:
                file.write(decode(image, size, f"item {i}").tobytes())
            except Unreadable as error:
                raise InputError(f"{error}; give an image that can be read") from None
            labels.append(label)
            if (i + 1) % REPORTED_EVERY == 0 or i + 1 == len(dataset):
                on_progress("reading images", i + 1, len(dataset))

    write_atomically(path, write)
    if len({type(label) for label in labels}) > 1:
        raise InputError("labels are a mix of text and numbers: give all of them as text, or all as numbers")
    classes = sorted(set(labels))  # type: ignore[type-var]
    number = {label: c for c, label in enumerate(classes)}
    images = np.memmap(path, dtype=np.uint8, mode="r", shape=(len(labels), size, size, 3))
    return Source(images, np.array([number[label] for label in labels]), tuple(_names(dataset, classes)))


def _items(dataset: Pairs) -> Iterator[tuple[Encoded, Label]]:
    for i in range(len(dataset)):
        image, label = dataset[i]
        yield encoded(image, f"item {i}"), _plain(label, i)


def _plain(label: Any, i: int) -> Label:
    value = label.item() if isinstance(label, torch.Tensor | np.generic) and label.ndim == 0 else label
    if not isinstance(value, int | str):
        raise InputError(f"item {i}: its label is of type {type(label).__name__}; give an integer or text")
    return value


def _names(dataset: Pairs, classes: list[Label]) -> list[str]:
    """Torchvision's data sets have the names of their classes beside the numbers."""
    names = getattr(dataset, "classes", None)
    numbers = [c for c in classes if isinstance(c, int)]
    if isinstance(names, list | tuple) and len(numbers) == len(classes) and 0 <= numbers[0] <= numbers[-1] < len(names):
        return [str(names[c]) for c in numbers]
    return [str(c) for c in classes]


def _fitting_size(dataset: Pairs) -> int:
    """The shorter side of the first image, within limits."""
    first = encoded(dataset[0][0], "item 0")
    if isinstance(first, np.ndarray):
        side = min(first.shape[:2])
    elif isinstance(first, Image.Image):
        side = min(first.size)
    else:
        side = SIZES[1]
    return min(max(side, SIZES[0]), SIZES[1])


def _reduced(image: Encoded) -> Encoded:
    if isinstance(image, Image.Image) and min(image.size) > LARGEST:
        factor = LARGEST / min(image.size)
        return image.resize((round(image.width * factor), round(image.height * factor)), Image.Resampling.BICUBIC)
    return image
