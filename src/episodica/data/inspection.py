"""Looking at a data set before it is trained on: is everything there and readable, and what will the learner see?"""

from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from PIL import Image, ImageDraw

from episodica.data.cache import Arrays, OnProgress, Source, begin_fingerprint, decode_each
from episodica.data.dataset import Dataset, FileDataset
from episodica.data.decode import Unreadable
from episodica.data.splits import Rows, Split
from episodica.errors import InputError
from episodica.files.door import Folder

SHOWN = 12  # images of a class on a contact sheet
SMALLEST, LARGEST = 64, 128  # pixels of a side that they are enlarged to at least about, or reduced to
GAP, LABEL = 2, 110  # its margins in pixels


@dataclass(frozen=True)
class Inspection:
    """What `episodica data check` found."""

    dataset: str
    classes: int
    images: int
    class_sizes: dict[str, int]
    unreadable: list[str]
    duplicates: list[list[str]]
    remarks: list[str]

    @property
    def sound(self) -> bool:
        return not self.unreadable

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"sound": self.sound}


def inspect(dataset: Dataset, on_progress: OnProgress) -> tuple[Inspection, Arrays]:
    """Decode every image anew. The arrays say all that a split depends on, without a pixel: nothing is cached."""
    size = dataset.size or dataset.native_size
    opened = (
        dataset.locate(on_progress).read()
        if isinstance(dataset, FileDataset)
        else nullcontext(_drawn(dataset.load(on_progress)))
    )
    with opened as source:
        same: dict[bytes, list[int]] = {}
        unreadable, content = [], begin_fingerprint(source.labels, source.class_names)
        for i, image in decode_each(source, size, on_progress):
            if isinstance(image, Unreadable):
                unreadable.append(str(image))
            else:
                content.update(image.tobytes())
                same.setdefault(blake2b(image.tobytes(), digest_size=16).digest(), []).append(i)
        sizes = Counter(source.labels.tolist())
        found = Inspection(
            dataset=dataset.name,
            classes=len(source.class_names),
            images=len(source.labels),
            class_sizes={name: sizes[c] for c, name in enumerate(source.class_names)},
            unreadable=unreadable,
            duplicates=[[source.name_of(i) for i in rows] for rows in same.values() if len(rows) > 1],
            remarks=_remarks(dataset, source),
        )
        no_pixels = np.empty((0, size, size, 3), np.uint8)
        described = (source.labels, source.class_names, content.hexdigest(), source.unseen, source.groups)
        return found, Arrays(no_pixels, *described)


def _drawn(arrays: Arrays) -> Source:
    return Source(arrays.images, arrays.labels, arrays.class_names, arrays.unseen, arrays.groups)


def _remarks(dataset: Dataset, source: Source) -> list[str]:
    if not isinstance(dataset, FileDataset) or dataset.official is None:
        return [*source.notes]
    classes, images = dataset.official
    if (len(source.class_names), len(source.labels)) == (classes, images):
        return ["complete: as many classes and images as the official set", *source.notes]
    return [f"not the whole set: the official one has {classes} classes and {images} images", *source.notes]


def describe_split(split: Split, names: tuple[str, ...]) -> dict[str, Any]:
    """Which classes are in which task, and how many images that makes."""
    tasks = [
        {"classes": [names[c] for c in train], "train_images": _images(train), "test_images": _images(test)}
        for train, test in zip(split.train, split.test, strict=True)
    ]
    unseen = {"classes": [names[c] for c in split.unseen], "images": _images(split.unseen)}
    return {"hash": split.hash, "tasks": tasks, "unseen": unseen}


def _images(rows: Rows) -> int:
    return sum(map(len, rows.values()))


def contact_sheets(split: Split, arrays: Arrays, folder: Path) -> list[Path]:
    """A picture of the first training images of each class, for each task and for the unseen classes."""
    pools = {f"task-{t:02d}": rows for t, rows in enumerate(split.train, start=1)} | {"unseen": split.unseen}
    paths = {folder / f"{name}.png": rows for name, rows in pools.items()}
    try:
        for path, rows in paths.items():
            Folder(folder).write(path.name, partial(sheet(rows, arrays).save, format="PNG"))
    except OSError as error:
        raise InputError(
            f"cannot write contact sheets into {folder}: {error.strerror}; choose another folder"
        ) from None
    return list(paths)


def sheet(rows: Rows, arrays: Arrays) -> Image.Image:
    """The first images of each class, one line for each."""
    side = arrays.images.shape[1]
    shown = min(side * max(1, SMALLEST // side), LARGEST)
    cell = shown + GAP
    across = min(SHOWN, max(map(len, rows.values()), default=0))
    paper = Image.new("RGB", (LABEL + across * cell, len(rows) * cell), "white")
    pen = ImageDraw.Draw(paper)
    for y, (c, of_class) in enumerate(rows.items()):
        pen.text((4, y * cell + cell // 2 - 6), _label(c, arrays.class_names[c]), fill="black")
        for x, row in enumerate(of_class[:SHOWN]):
            image = Image.fromarray(np.asarray(arrays.images[row])).resize((shown, shown), Image.Resampling.BOX)
            paper.paste(image, (LABEL + x * cell, y * cell))
    return paper


def _label(c: int, name: str) -> str:
    """What the font has of the name: letters without their accents; or the number of the class."""
    return "".join(filter(str.isascii, normalize("NFKD", name)))[:17].strip() or f"class {c}"
