"""What people bring to `learn`, `remember` and `classify --support`: from a folder or a file of labels to classes."""

from dataclasses import replace
from pathlib import Path

from episodica.classifier.class_names import class_name
from episodica.classifier.incoming.incoming import Incoming
from episodica.classifier.incoming.label_files import list_labelled
from episodica.classifier.incoming.layouts import Listed, list_folder
from episodica.classifier.incoming.screening import screened
from episodica.data.cache import OnProgress
from episodica.errors import InputError
from episodica.files.remote_copy import local_place


def read_classes(
    place: Path, model: Path | None = None, *, strict: bool = False, on_progress: OnProgress = lambda *_: None
) -> Incoming:
    """The images of each class, those that cannot be used left out and named; `strict` refuses instead.

    Of an address our copy is read. A model inside the folder would be taken for a class, and is refused.
    """
    place = local_place(place, on_progress)
    if model is not None and place.resolve() in (model.resolve(), *model.resolve().parents):
        raise InputError(f"{model} lies inside {place} and would be taken for a class: put the model elsewhere")
    try:
        listed = _listed(place)
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    classes: dict[str, list[Path]] = {}
    for name, paths in listed.classes.items():
        classes.setdefault(class_name(name), []).extend(paths)
    found = screened(classes, lambda name, i: str(classes[name][i]), on_progress)
    found = replace(found, left_out=(*listed.left_out, *found.left_out), notes=(*listed.notes, *found.notes))
    return checked(found, strict=strict)


def checked(found: Incoming, *, strict: bool) -> Incoming:
    if strict and found.left_out:
        raise InputError(f"{found.summary()}. Repair or remove them, or do without strict")
    return found


def _listed(place: Path) -> Listed:
    if place.is_dir():
        return list_folder(place)
    if place.is_file() and place.suffix.lower() == ".csv":
        return list_labelled(place)
    raise InputError(
        f"{place} is not a folder: give one with a sub-folder of images for each class, or a CSV file of paths and "
        "labels"
    )
