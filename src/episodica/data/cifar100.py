"""CIFAR-100 (Krizhevsky 2009): 100 classes x 600 images of 32 px, as the official Python-2 pickles."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from episodica.data.cache import Source
from episodica.data.dataset import FileDataset, Found
from episodica.data.pickles import by_name, load_pickle, strings, whole_numbers
from episodica.errors import InputError


class CIFAR100(FileDataset, name="cifar100"):
    """100 classes x 600 images, 32 px; 80 stream and 20 unseen classes."""

    native_size: ClassVar[int] = 32
    official: ClassVar[tuple[int, int] | None] = (100, 60_000)
    where: ClassVar[str] = "https://www.cs.toronto.edu/~kriz/cifar.html (CIFAR-100, python version)"
    layout: ClassVar[str] = "cifar-100-python.tar.gz, or the folder cifar-100-python with train, test and meta"
    archives: ClassVar[tuple[str, ...]] = ("cifar-100-python.tar.gz",)
    unpacked_bytes: ClassVar[int] = 2**30

    def test_per_class(self, counts: np.ndarray) -> int:
        return 100

    def unseen_classes(self, classes: int) -> int:
        return 20

    def find(self, folder: Path) -> Found | None:
        files = [folder / name for name in ("train", "test", "meta")]
        return Found(files, lambda: read(*files)) if all(path.is_file() for path in files) else None


def read(train: Path, test: Path, meta: Path) -> Source:
    """Train images in file order, then test images: the order that the natural split is defined on."""
    parts = [_part(path) for path in (train, test)]
    (names,) = _entries(meta, "fine_label_names")
    names = strings(names, f"{meta}: fine_label_names")
    labels = np.concatenate([labels for _, labels in parts])
    if set(labels.tolist()) != set(range(len(names))):
        raise InputError(
            f"{train.parent}: labels of {len(set(labels.tolist()))} classes from {labels.min(initial=0)} to "
            f"{labels.max(initial=0)}, but meta names {len(names)} classes"
        )
    return Source(np.concatenate([images for images, _ in parts]), labels, tuple(names))


def _part(path: Path) -> tuple[np.ndarray, np.ndarray]:
    data, labels = _entries(path, "data", "fine_labels")
    labels = whole_numbers(labels, f"{path}: fine_labels")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape != (len(labels), 3072):
        raise InputError(f"{path}: `data` is not a byte array of {len(labels)} images of 3 x 32 x 32")
    return data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


def _entries(path: Path, *keys: str) -> list[object]:
    record = by_name(load_pickle(path), str(path))
    missing = [key for key in keys if key not in record]
    if missing:
        raise InputError(f"{path} is not a file of CIFAR-100: it has no entry {missing[0]}")
    return [record[key] for key in keys]
