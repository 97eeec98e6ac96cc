"""Tiered-ImageNet (Ren et al. 2018): 608 ImageNet classes in 34 categories, with the split of the user's own files.

The publishers' pickles hold PNG-encoded images, over 12 GB of them; they stay on disk while they are read. Train and
val classes are the stream, test classes are unseen.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from episodica.data.cache import Source
from episodica.data.dataset import FileDataset, Found
from episodica.data.folder_layouts import PARTS, find_published
from episodica.data.pickles import by_name, load_pickle, strings, whole_numbers
from episodica.errors import InputError


class TieredImageNet(FileDataset, name="tiered_imagenet"):
    """608 ImageNet classes, about 1,281 images each, 84 px; 351 + 97 stream and 160 unseen classes."""

    part_of: ClassVar[str | None] = "ImageNet"
    native_size: ClassVar[int] = 84
    official: ClassVar[tuple[int, int] | None] = (608, 779_165)
    where: ClassVar[str] = (
        "https://github.com/renmengye/few-shot-ssl-public (it is made from ImageNet, which needs a licence)"
    )
    layout: ClassVar[str] = (
        "{train,val,test}_images_png.pkl with {train,val,test}_labels.pkl; "
        "or train/, val/ and test/ with a folder for each class"
    )

    def test_per_class(self, counts: np.ndarray) -> int:
        return 100

    def unseen_classes(self, classes: int) -> int:
        return 160

    def find(self, folder: Path) -> Found | None:
        pairs = [(folder / f"{part}_images_png.pkl", folder / f"{part}_labels.pkl") for part in PARTS]
        if all(path.is_file() for pair in pairs for path in pair):
            return Found([path for pair in pairs for path in pair], lambda: read(pairs))
        return find_published(folder)


class Encoded(Sequence[memoryview]):
    """The PNG-encoded images of several files as one sequence."""

    def __init__(self, parts: list[list[np.ndarray]]) -> None:
        self._parts = parts
        self._starts = np.cumsum([0, *(len(part) for part in parts)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, i: Any) -> Any:
        part = int(np.searchsorted(self._starts, i, side="right")) - 1
        return memoryview(self._parts[part][i - self._starts[part]].reshape(-1))


def read(pairs: list[tuple[Path, Path]]) -> Source:
    images, labels, names, unseen = [], [], [], []
    for encoded, described in pairs:
        part, of_image, found = _part(encoded, described)
        images.append(part)
        labels.append(of_image + len(names))
        if encoded is pairs[-1][0]:
            unseen = list(range(len(names), len(names) + len(found)))
        names += found
    return Source(Encoded(images), np.concatenate(labels), tuple(_distinct(names)), tuple(unseen))


def _distinct(names: list[str]) -> list[str]:
    """ImageNet has two kinds of cranes and of maillots."""
    return [f"{name} ({i})" if name in names[:i] else name for i, name in enumerate(names)]


def _part(encoded: Path, described: Path) -> tuple[list[np.ndarray], np.ndarray, list[str]]:
    images, record = load_pickle(encoded), load_pickle(described)
    if not isinstance(images, list) or not all(isinstance(x, np.ndarray) and x.dtype == np.uint8 for x in images):
        raise InputError(f"{encoded} is not a list of PNG-encoded byte arrays")
    entries = by_name(record, str(described))
    if not {"label_specific", "label_specific_str"} <= set(entries):
        raise InputError(f"{described} needs label_specific and label_specific_str")
    labels = whole_numbers(entries["label_specific"], f"{described}: label_specific")
    names = strings(entries["label_specific_str"], f"{described}: label_specific_str")
    if not names or len(labels) != len(images) or set(labels.tolist()) != set(range(len(names))):
        raise InputError(
            f"{described}: {len(labels)} labels of {len(set(labels.tolist()))} classes for {len(images)} images, and "
            f"{len(names)} names"
        )
    return images, labels, names
