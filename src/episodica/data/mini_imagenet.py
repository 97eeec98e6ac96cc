"""Mini-ImageNet (Vinyals et al. 2016) in the forms in which people have it, with the split of their own files.

`images/` with the csv files of Ravi & Larochelle; the three cache pickles; or folders of classes in train, val and
test. Train and val classes are the stream, test classes are unseen.
"""

import csv
from pathlib import Path
from typing import ClassVar

import numpy as np

from episodica.data.cache import Source
from episodica.data.dataset import FileDataset, Found
from episodica.data.folder_layouts import PARTS, find_published, published_source
from episodica.data.pickles import by_name, load_pickle, whole_numbers
from episodica.errors import InputError


class MiniImageNet(FileDataset, name="mini_imagenet"):
    """100 ImageNet classes x 600 images, 84 px; 64 + 16 stream and 20 unseen classes, by the user's split files."""

    part_of: ClassVar[str | None] = "ImageNet"
    native_size: ClassVar[int] = 84
    official: ClassVar[tuple[int, int] | None] = (100, 60_000)
    where: ClassVar[str] = (
        "ImageNet (which needs a licence) with the csv files of "
        "https://github.com/twitter-research/meta-learning-lstm, or whoever gave you the split that you follow"
    )
    layout: ClassVar[str] = (
        "images/ with train.csv, val.csv and test.csv; or mini-imagenet-cache-{train,val,test}.pkl; "
        "or train/, val/ and test/ with a folder for each class"
    )

    def test_per_class(self, counts: np.ndarray) -> int:
        return 100

    def unseen_classes(self, classes: int) -> int:
        return 20

    def find(self, folder: Path) -> Found | None:
        tables = [folder / f"{part}.csv" for part in PARTS]
        if all(path.is_file() for path in tables) and (folder / "images").is_dir():
            images = (path for path in sorted((folder / "images").iterdir()) if path.is_file())
            return Found([*tables, *images], lambda: read_tables(folder, tables))
        caches = [folder / f"mini-imagenet-cache-{part}.pkl" for part in PARTS]
        if all(path.is_file() for path in caches):
            return Found(caches, lambda: read_caches(caches))
        return find_published(folder)


def read_tables(folder: Path, tables: list[Path]) -> Source:
    """Columns filename and label; images lie in `images/`."""
    parts: dict[str, dict[str, list[Path]]] = {}
    for part, table in zip(PARTS, tables, strict=True):
        classes = parts.setdefault(part, {})
        for line in _lines(table):
            classes.setdefault(line["label"], []).append(folder / "images" / Path(line["filename"]).name)
    return published_source({part: dict(sorted(classes.items())) for part, classes in parts.items()}, folder)


def _lines(table: Path) -> list[dict[str, str]]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{table} is not a readable csv file: {error}") from None
    if not lines or not {"filename", "label"} <= set(lines[0]):
        raise InputError(f"{table} needs the columns filename and label, and at least one line")
    if not all(line["filename"] and line["label"] for line in lines):
        raise InputError(f"{table} has a line without filename or label")
    return lines


def read_caches(caches: list[Path]) -> Source:
    """Each a dict with `image_data` [n, 84, 84, 3] and `class_dict` {class: rows}."""
    images: list[np.ndarray] = []
    labels, names, unseen = [], [], []
    for path in caches:
        data, classes = _cache(path)
        for name, rows in sorted(classes.items()):
            if name in names:
                raise InputError(f"{path}: class {name} is in another part of the split too")
            if path is caches[-1]:
                unseen.append(len(names))
            images.extend(data[row] for row in rows)  # views: the pixels stay in the file
            labels.append(np.full(len(rows), len(names)))
            names.append(name)
    return Source(images, np.concatenate(labels), tuple(names), tuple(unseen))


def _cache(path: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    record = by_name(load_pickle(path), str(path))
    data, classes = record.get("image_data"), record.get("class_dict")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 4 or not classes:
        raise InputError(f"{path} is not a Mini-ImageNet cache: it needs image_data [n, 84, 84, 3] and class_dict")
    classes = by_name(classes, f"{path}: class_dict")
    rows = {name: whole_numbers(value, f"{path}: class_dict[{name!r}]") for name, value in classes.items()}
    if any(len(r) == 0 or r.min() < 0 or r.max() >= len(data) for r in rows.values()):
        raise InputError(f"{path}: class_dict points outside image_data, which has {len(data)} images")
    return data, rows
