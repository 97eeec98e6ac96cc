"""Folders of images: a sub-folder for each class; these in train, val and test; or the class in the files' names.

april/robin/IMG_1.jpg       by sub-folder, whatever lies deeper belongs to it
april/train/robin/1.jpg     train, val and test are parts of one collection, and their classes are put together
april/robin_01.jpg          without any sub-folder: what stands before the number
"""

from dataclasses import dataclass, field
from pathlib import Path

from episodica.classifier.incoming.incoming import LeftOut
from episodica.data.dataset import contents
from episodica.data.image_formats import is_image_file, is_unread_image_file
from episodica.errors import InputError, listed

PARTS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})
NUMBER = " _.-()0123456789"  # what a number at the end of a name is made of
CAMERA = frozenset(
    {"dcim", "dsc", "dscf", "dscn", "frame", "gopr", "image", "img", "mvimg", "p", "photo", "pic", "picture", "pxl"}
    | {"scan", "screenshot", "vid"}
)  # what cameras and programs put before a number is no class


@dataclass
class Listed:
    """Files by the class that they lie in, and image files that are not of any."""

    classes: dict[str, list[Path]] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, path: Path) -> None:
        if is_unread_image_file(path):
            self.left_out.append(LeftOut(str(path), f"{path.suffix.lower()} files are not read; save it as JPEG"))
        else:
            self.classes.setdefault(name, []).append(path)


def list_folder(folder: Path) -> Listed:
    inside = {entry: _images_below(entry) for entry in sorted(folder.iterdir()) if _is_shown_folder(entry)}
    inside = {entry: images for entry, images in inside.items() if images}
    loose = _images_in(folder)
    if not inside:
        return _by_file_name(folder, loose)
    parts = [entry.name for entry in inside if entry.name.lower() in PARTS]
    if parts and len(parts) == len(inside):
        listed_ = _by_part(folder, list(inside))
    elif len(parts) > 1:
        others = listed([entry.name for entry in inside if entry.name not in parts])
        raise InputError(
            f"{folder} has {listed(parts)}, which look like parts of one collection, beside {others}: put the classes "
            "of all parts into one folder, or name one part alone"
        )
    else:
        listed_ = _by_sub_folder(folder, inside)
    listed_.left_out += [LeftOut(str(path), "lies beside the folders of the classes") for path in loose]
    return listed_


def _by_sub_folder(folder: Path, inside: dict[Path, list[Path]]) -> Listed:
    if len(inside) == 1:
        (only,) = inside
        deeper = [entry.name for entry in sorted(only.iterdir()) if _is_shown_folder(entry) and _images_below(entry)]
        if len(deeper) > 1 and not _images_in(only):
            raise InputError(
                f"{folder} has one folder, {only.name}, and the images are in folders inside it ({listed(deeper)}): "
                f"name {only} if those are the classes, or put the images into {only} itself if they are one class"
            )
    found = Listed()
    for entry, images in inside.items():
        for path in images:
            found.add(entry.name, path)
    return found


def _by_part(folder: Path, parts: list[Path]) -> Listed:
    found = Listed()
    for part in parts:
        loose = _images_in(part)
        if loose:
            raise InputError(
                f"{part} looks like a part of a collection and has images that are of no class, such as "
                f"{loose[0].name}: put the images of each class into a sub-folder of their own, or rename {part.name} "
                "if that is the name of a class"
            )
        for entry in sorted(part.iterdir()):
            for path in _images_below(entry) if _is_shown_folder(entry) else ():
                found.add(entry.name, path)
    names = listed([part.name for part in parts])
    found.notes.append(
        f"{folder} is divided into {names}: the images of a class are taken together from "
        f"{'it' if len(parts) == 1 else 'all of them'}"
    )
    return found


def _by_file_name(folder: Path, images: list[Path]) -> Listed:
    found = Listed()
    for path in images:
        label = _label(path)
        if label is None:
            found.left_out.append(LeftOut(str(path), "is in no folder of a class and has no class in its name"))
        else:
            found.add(label, path)
    if not found.classes:
        raise InputError(
            f"{folder} has no sub-folder with images, and each class needs one, or a name with a number such as "
            f"robin_01.jpg, or a line in a CSV file; found there: {contents(folder)}"
        )
    found.notes.append(
        f"{folder} has no sub-folders: the classes are those in the names of the files ({listed(list(found.classes))})"
    )
    return found


def _label(path: Path) -> str | None:
    """`robin` of robin_01.jpg, `house sparrow` of house sparrow (2).png; none of IMG_2041.jpg."""
    name = path.stem.rstrip(NUMBER)
    numbered = any(map(str.isdigit, path.stem[len(name) :]))
    return name if numbered and any(map(str.isalpha, name)) and name.lower() not in CAMERA else None


def _is_shown_folder(entry: Path) -> bool:
    return entry.is_dir() and not entry.name.startswith((".", "__"))


def _images_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _is_image(path, folder))


def _images_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if _is_image(path, folder))


def _is_image(path: Path, folder: Path) -> bool:
    """Also of kinds that are not read: they are named."""
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return (is_image_file(path) or is_unread_image_file(path)) and not hidden and path.is_file()
