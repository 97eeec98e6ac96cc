"""CUB-200-2011 (Wah et al. 2011): 11,788 photographs of 200 kinds of birds, in the official layout."""

import re
from pathlib import Path
from typing import ClassVar

import numpy as np

from episodica.data.cache import Source
from episodica.data.dataset import FileDataset, Found
from episodica.errors import InputError

TABLES = ("images.txt", "image_class_labels.txt", "classes.txt")


class CUB(FileDataset, name="cub"):
    """200 kinds of birds, about 59 images each, cut to 84 px; 160 stream and 40 unseen classes."""

    native_size: ClassVar[int] = 84
    official: ClassVar[tuple[int, int] | None] = (200, 11_788)
    where: ClassVar[str] = "https://www.vision.caltech.edu/datasets/cub_200_2011"
    layout: ClassVar[str] = (
        "CUB_200_2011.tgz, or the folder CUB_200_2011 with images/, images.txt, image_class_labels.txt and classes.txt"
    )
    archives: ClassVar[tuple[str, ...]] = ("CUB_200_2011.tgz", "CUB_200_2011.tar.gz")
    unpacked_bytes: ClassVar[int] = 8 * 2**30

    def test_per_class(self, counts: np.ndarray) -> int:
        return 20

    def unseen_classes(self, classes: int) -> int:
        return classes // 5

    def find(self, folder: Path) -> Found | None:
        tables = [folder / name for name in TABLES]
        if not all(path.is_file() for path in tables) or not (folder / "images").is_dir():
            return None
        files = [*tables, *(path for path in sorted((folder / "images").rglob("*")) if path.is_file())]
        return Found(files, lambda: read(folder))


def read(folder: Path) -> Source:
    """Images in the order of their official numbers."""
    paths, class_of, names = (_table(folder / name) for name in TABLES)
    if set(paths) != set(class_of) or not set(class_of.values()) <= set(names):
        raise InputError(
            f"{folder}: images.txt, image_class_labels.txt and classes.txt do not speak of the same images"
        )
    outside = [path for path in paths.values() if ".." in Path(path).parts or Path(path).is_absolute()]
    if outside:
        raise InputError(f"{folder}/images.txt names {outside[0]}, which is outside the data set")
    numbers = {number: i for i, number in enumerate(sorted(set(class_of.values()), key=int))}
    images = sorted(paths, key=int)
    labels = np.array([numbers[class_of[image]] for image in images])
    return Source([folder / "images" / paths[i] for i in images], labels, tuple(names[n] for n in numbers))


def _table(path: Path) -> dict[str, str]:
    """Lines `NUMBER VALUE`."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file") from None
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        match = re.fullmatch(r"([0-9]{1,9})\s+(.+)", line)
        if match is None:
            raise InputError(f"{path} must have lines of the form NUMBER VALUE, and has {line[:80]!r}")
        if match[1] in found:
            raise InputError(f"{path} has two lines with the number {match[1]}")
        found[match[1]] = match[2]
    return found
