"""What people give a classifier: many images and their labels, or a data set of both."""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from episodica.classifier.incoming.screening import screened
from episodica.classifier.labels import Labels, label_array, names_of
from episodica.data.decode import Encoded
from episodica.data.pairs import Pairs, is_pairs, read_pairs
from episodica.data.pictures import Picture, encoded
from episodica.errors import InputError, listed

BATCH = 250

Pictures = Sequence[Picture] | np.ndarray | Tensor


def images_and_labels(images: Pictures | Pairs, labels: Labels | None) -> tuple[Pictures, np.ndarray]:
    """As many labels as images. A data set brings its own labels."""
    _require_several(images)
    if labels is None:
        if not is_pairs(images):
            raise InputError(
                "this FewShotClassifier requires y to be passed, but the target y is None: give one label for each "
                "image, or a data set of (image, label) pairs"
            )
        images, labels = read_pairs(images)
    array = label_array(labels)
    if len(images) != len(array):
        raise InputError(f"there are {len(images)} images and {len(array)} labels: give one label for each image")
    return images, array  # type: ignore[return-value]


def by_class(images: Pictures, labels: np.ndarray) -> dict[str, list[Encoded]]:
    """The images of each class, by the name that it has in a model."""
    classes: dict[str, list[Encoded]] = {}
    for i, (image, name) in enumerate(zip(images, names_of(labels), strict=True)):
        classes.setdefault(name, []).append(encoded(image, f"image {i}"))
    return classes


def usable(images: Pictures, labels: np.ndarray) -> Mapping[str, Sequence[Encoded]]:
    """The images of each class but for those that cannot be read or are there twice: a warning names them.

    Every label that was given has images afterwards, or is refused: what is in `classes_` can be answered.
    """
    classes, places = by_class(images, labels), defaultdict[str, list[int]](list)
    for i, name in enumerate(names_of(labels)):
        places[name].append(i)

    def name_of(name: str, i: int) -> str:
        image = classes[name][i]
        return str(image) if isinstance(image, Path) else f"image {places[name][i]}"

    incoming = screened(classes, name_of)
    without = [f'"{name}"' for name in classes if name not in incoming.classes]
    if without:
        raise InputError(
            f"no image of class {listed(without)} can be used ({incoming.summary()}): give other images of it, or "
            "leave its label out"
        )
    if incoming.left_out:
        warnings.warn(incoming.summary(), stacklevel=3)
    return incoming.classes


def in_batches(images: Pictures | Pairs) -> Iterator[Sequence[Picture] | np.ndarray | Tensor]:
    """A few hundred at a time; of a data set the images alone."""
    _require_several(images)
    pairs = is_pairs(images)
    for start in range(0, len(images), BATCH):
        stop = min(start + BATCH, len(images))
        yield [images[i][0] for i in range(start, stop)] if pairs else images[start:stop]  # type: ignore[index,misc]


def _require_several(images: object) -> None:
    if isinstance(images, str | bytes | Path | Image.Image):
        raise InputError("this is one image: give a list of images, if only of one")
