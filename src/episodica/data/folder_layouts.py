"""Images in folders: one sub-folder a class, or train, val and test with one sub-folder a class in each."""

from pathlib import Path

import numpy as np

from episodica.data.cache import Source
from episodica.data.dataset import Found
from episodica.data.image_formats import is_image_file
from episodica.errors import InputError

PARTS = ("train", "val", "test")


def class_folders(folder: Path) -> dict[str, list[Path]]:
    """Class name -> its image files, both sorted; hidden folders and other files are passed over."""
    found = {}
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.name.startswith((".", "__")):
            images = sorted(path for path in entry.rglob("*") if _is_image(path.relative_to(entry)) and path.is_file())
            if images:
                found[entry.name] = images
    return found


def _is_image(path: Path) -> bool:
    return is_image_file(path) and not any(part.startswith(".") for part in path.parts)


def published_folders(folder: Path) -> dict[str, dict[str, list[Path]]] | None:
    """The classes of train, val and test where the folder is divided so; val may be missing."""
    if not all((folder / part).is_dir() for part in ("train", "test")):
        return None
    parts = {part: class_folders(folder / part) for part in PARTS if (folder / part).is_dir()}
    return parts if all(parts[part] for part in ("train", "test")) else None


def find_published(folder: Path) -> Found | None:
    """A set that is divided so, with its published split."""
    parts = published_folders(folder)
    if parts is None:
        return None
    files = [path for part in parts.values() for images in part.values() for path in images]
    return Found(files, lambda: published_source(parts, folder))


def published_source(parts: dict[str, dict[str, list[Path]]], folder: Path) -> Source:
    """Stream classes from train and val, unseen classes from test."""
    unseen = set(parts["test"])
    twice = sorted(name for part in parts if part != "test" for name in parts[part] if name in unseen)
    if twice:
        raise InputError(
            f"{folder}: class {twice[0]} is in test and in another part, but a published split divides classes, not "
            "images; put all images of a class into one folder"
        )
    merged: dict[str, list[Path]] = {}
    for part in parts.values():
        for name, images in part.items():
            merged.setdefault(name, []).extend(images)
    if len(unseen) < 2 or len(merged) - len(unseen) < 2:
        raise InputError(
            f"{folder} has {len(merged) - len(unseen)} classes in train and val and {len(unseen)} in test: there must "
            "be at least 2 to learn and 2 to test on"
        )
    return source_of(merged, unseen)


def source_of(classes: dict[str, list[Path]], unseen: set[str] | None = None) -> Source:
    names = tuple(classes)
    labels = np.repeat(np.arange(len(names)), [len(paths) for paths in classes.values()])
    held_out = None if unseen is None else tuple(i for i, name in enumerate(names) if name in unseen)
    return Source([path for paths in classes.values() for path in paths], labels, names, held_out)
