"""Folders that people bring: one sub-folder for each class, whose name is that of the class."""

from pathlib import Path

from episodica.data.dataset import contents
from episodica.data.folders import class_folders
from episodica.errors import InputError


def read_classes(folder: Path) -> dict[str, list[Path]]:
    try:
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder: give one with a sub-folder of images for each class")
        found = class_folders(folder)
        if not found:
            raise InputError(
                f"{folder} has no sub-folder with images, and each class needs one; found there: {contents(folder)}"
            )
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    return found
