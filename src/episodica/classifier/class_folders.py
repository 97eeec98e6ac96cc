"""Folders that people bring: one sub-folder for each class, whose name is that of the class."""

from pathlib import Path
from unicodedata import normalize

from episodica.data.dataset import contents
from episodica.data.folder_layouts import class_folders
from episodica.errors import InputError


def read_classes(folder: Path, model: Path | None = None) -> dict[str, list[Path]]:
    """Class name -> its image files. A model inside the folder would be taken for a class, and is refused."""
    if model is not None and folder.resolve() in (model.resolve(), *model.resolve().parents):
        raise InputError(f"{model} lies inside {folder} and would be taken for a class: put the model elsewhere")
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
    named: dict[str, list[Path]] = {}
    for name, images in found.items():
        named.setdefault(class_name(name), []).extend(images)
    return named


def class_name(text: str) -> str:
    """Some systems write an accent as a character of its own: names are composed, so that they are what people type."""
    return normalize("NFC", text)
