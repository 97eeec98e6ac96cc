"""Labels as people give them, and the names under which a model knows its classes.

A classifier answers with labels of the type that it was taught: numbers stay numbers. A model folder knows names alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from episodica.classifier.class_names import class_name
from episodica.errors import InputError

Labels = Sequence[Any] | np.ndarray | Tensor

KINDS = {"U": "text", "i": "integers", "u": "integers", "b": "booleans", "f": "floats"}


def label_array(labels: Labels) -> np.ndarray:
    """One label an image: text, with accents composed, integers, booleans, or floats without a fraction. [n]"""
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().numpy()
    elif not hasattr(labels, "__array__") and len({isinstance(label, str) for label in labels}) > 1:
        raise InputError("labels are a mix of text and numbers: give all of them as text, or all as numbers")
    array = np.asarray(labels)
    if array.ndim != 1:
        raise InputError(
            f"y should be a 1d array, got an array of shape {array.shape} instead: give one label for each image"
        )
    if array.dtype.kind == "O":
        array = _of_objects(array)
    if array.dtype.kind not in KINDS:
        raise InputError(f"Unknown label type: {array.dtype}; give text or integers")
    if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array == np.rint(array)).all()):
        raise InputError(
            f"Unknown label type: continuous; y has {_odd(array)}, and classes are text or integers, without NaN and "
            "infinity"
        )
    return np.array([class_name(label) for label in array.tolist()], dtype=str) if array.dtype.kind == "U" else array


def names_of(labels: np.ndarray) -> list[str]:
    """The names of the classes in a model."""
    return [class_name(str(label)) for label in labels.tolist()]


def merged(known: np.ndarray | None, more: np.ndarray) -> np.ndarray:
    """All different labels, sorted."""
    if known is None or not len(known):
        return np.unique(more)
    if KINDS[known.dtype.kind] != KINDS[more.dtype.kind]:
        raise InputError(
            f"labels are {KINDS[more.dtype.kind]}, and those of earlier calls were {KINDS[known.dtype.kind]}: give "
            "labels of one type"
        )
    return np.unique(np.concatenate([known, more]))


def _of_objects(array: np.ndarray) -> np.ndarray:
    """An array of Python objects as one of text or numbers, where they are all of one type."""
    plain = np.array(array.tolist())
    if plain.ndim != 1 or plain.dtype.kind not in KINDS or len({isinstance(v, str) for v in array.tolist()}) > 1:
        raise InputError("Unknown label type: labels are objects of several types; give text or integers")
    return plain


def _odd(array: np.ndarray) -> float:
    return float(array[~np.isfinite(array) | (array != np.rint(array))][0])
