"""Writes every layout that a loader reads, with generated images."""

import csv
import io
import pickle
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def picture(seed: int, size: int = 84) -> np.ndarray:
    """A flat colour with a corner of another, so that orientation and channels can be told. uint8 [size, size, 3]"""
    g = np.random.default_rng(seed)
    image = np.empty((size, size, 3), np.uint8)
    image[:] = g.integers(0, 256, 3)
    image[: size // 2, : size // 2] = g.integers(0, 256, 3)
    return image


def png(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()


def write_png(path: Path, image: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(image))


def class_folders(folder: Path, classes: Iterable[str], images: int, start: int = 0) -> Path:
    for c, name in enumerate(classes):
        for i in range(images):
            write_png(folder / name / f"{i}.png", picture(start + 1000 * c + i, 20))
    return folder


def published_folders(folder: Path, images: int = 6) -> Path:
    for start, (part, count) in enumerate((("train", 4), ("val", 2), ("test", 3))):
        class_folders(folder / part, [f"{part}_{c}" for c in range(count)], images, start * 10_000)
    return folder


def cifar(folder: Path, classes: int = 100, train: int = 5, test: int = 1) -> Path:
    """The official folder, with as many images a class; labels are in turn, pixels are those of `picture`."""
    folder.mkdir(parents=True)
    for name, images, start in (("train", train, 0), ("test", test, classes * train)):
        labels = [i % classes for i in range(classes * images)]
        pixels = np.stack([picture(start + i, 32) for i in range(len(labels))])
        record = {
            b"data": pixels.transpose(0, 3, 1, 2).reshape(len(labels), -1),
            b"fine_labels": labels,
            b"coarse_labels": [label // 5 for label in labels],
            b"filenames": [b"x.png"] * len(labels),
        }
        dump(record, folder / name)
    dump({b"fine_label_names": [f"class{c}".encode() for c in range(classes)]}, folder / "meta")
    return folder


def mini_tables(folder: Path, images: int = 6) -> Path:
    number = 0
    for part, classes in (("train", 4), ("val", 2), ("test", 3)):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{part}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["filename", "label"])
            for c in range(classes):
                for i in range(images):
                    name = f"{part}{c:02d}{i:04d}.png"
                    write_png(folder / "images" / name, picture(number))
                    table.writerow([name, f"n_{part}_{c}"])
                    number += 1
    return folder


def mini_caches(folder: Path, images: int = 6, keys: type = str) -> Path:
    folder.mkdir(parents=True)
    number = 0
    for part, classes in (("train", 4), ("val", 2), ("test", 3)):
        data = np.stack([picture(number + i) for i in range(classes * images)])
        number += len(data)
        rows = {_key(f"n_{part}_{c}", keys): list(range(c * images, (c + 1) * images)) for c in range(classes)}
        record = {_key("image_data", keys): data, _key("class_dict", keys): rows}
        dump(record, folder / f"mini-imagenet-cache-{part}.pkl")
    return folder


def cub(folder: Path, classes: int = 10, images: int = 6) -> Path:
    folder.mkdir(parents=True)
    names = [f"{c + 1:03d}.Bird_{c}" for c in range(classes)]
    paths = [f"{name}/{name}_{i}.png" for name in names for i in range(images)]
    for number, path in enumerate(paths):
        write_png(folder / "images" / path, picture(number, 96))
    _lines(folder / "images.txt", paths)
    _lines(folder / "image_class_labels.txt", [str(i // images + 1) for i in range(len(paths))])
    _lines(folder / "classes.txt", names)
    _lines(folder / "train_test_split.txt", ["1"] * len(paths))
    return folder


def tiered(folder: Path, images: int = 6) -> Path:
    folder.mkdir(parents=True)
    number = 0
    for part, classes in (("train", 4), ("val", 2), ("test", 3)):
        count = classes * images
        encoded = [np.frombuffer(png(picture(number + i)), np.uint8) for i in range(count)]
        number += count
        dump(encoded, folder / f"{part}_images_png.pkl")
        labels = {
            "label_specific": [i // images for i in range(count)],
            "label_general": [0] * count,
            "label_specific_str": [f"{part}_{c}" for c in range(classes)],
            "label_general_str": [part],
        }
        dump(labels, folder / f"{part}_labels.pkl")
    return folder


def packed(folder: Path, archive: Path) -> Path:
    """The folder as a .tar.gz."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    return archive


def nested(depth: int) -> list[Any]:
    """A short pickle that unfolds to 2 ** depth numbers."""
    value: list[Any] = [0, 1]
    for _ in range(depth):
        value = [value, value]
    return value


def dump(value: Any, path: Path) -> None:
    with path.open("wb") as file:
        pickle.dump(value, file, protocol=2)


def _key(name: str, kind: type) -> Any:
    return name.encode() if kind is bytes else name


def _lines(path: Path, values: Iterable[str]) -> None:
    path.write_text("".join(f"{i} {value}\n" for i, value in enumerate(values, start=1)))
