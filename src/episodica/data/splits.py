"""Which class belongs to which task and which image is a test image. A split is data: it is written and has a hash."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import zip_longest

import numpy as np

from episodica.errors import InputError, listed
from episodica.lazy_torch import torch
from episodica.rng import generator

LEAST = 2  # images of a class in any episode: a support image and a query
Rows = dict[int, list[int]]  # class -> rows of the store


@dataclass(frozen=True)
class Split:
    """Disjoint rows: train and test of each task, and all images of the unseen classes."""

    train: tuple[Rows, ...]
    test: tuple[Rows, ...]
    unseen: Rows
    fingerprint: str  # of the images that the rows point to

    @property
    def hash(self) -> str:
        return blake2b(json.dumps(asdict(self)).encode(), digest_size=16).hexdigest()

    def to_json(self, class_names: Sequence[str]) -> str:
        return json.dumps({"hash": self.hash, "class_names": class_names, **asdict(self)}, separators=(",", ":"))


def make_split(
    labels: np.ndarray,
    *,
    tasks: int,
    order: str,
    seed: int,
    test_per_class: int,
    unseen: int | Sequence[int],
    validation: int = 0,
    fingerprint: str = "",
    groups: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> Split:
    """`unseen` is a number of classes to hold out, or the classes that the publisher of the set has chosen.

    With `validation` the last classes of the stream leave it and take their place, so that settings can be chosen
    without a look at them.
    """
    classes = int(labels.max()) + 1
    unseen_classes = unseen if isinstance(unseen, int) else len(unseen)
    stream_classes = classes - unseen_classes - validation
    if stream_classes < 2 * tasks:
        held_out = f"{unseen_classes} unseen ones" + (f" and {validation} for validation" if validation else "")
        raise InputError(
            f"stream.tasks = {tasks}: {classes} classes less {held_out} leave {stream_classes}, and "
            f"a task needs at least 2: use at most {max(stream_classes // 2, 0)} tasks or fewer stream.unseen_classes"
        )
    if validation == 1:
        raise InputError("stream.validation_classes = 1: few-shot questions need at least 2 classes")
    ordered = _class_order(classes, unseen_classes, order, seed, groups)
    if not isinstance(unseen, int):
        ordered = [c for c in ordered if c not in set(unseen)] + sorted(unseen)
    by_class = _rows_by_class(labels, order, seed)
    short = [c for c in ordered[:stream_classes] if len(by_class[c]) < test_per_class + LEAST]
    if short:
        sizes = [f"{names[c] if names else c} ({len(by_class[c])})" for c in short]
        raise InputError(
            f"stream.test_per_class = {test_per_class} leaves fewer than {LEAST} training images of {len(short)} "
            f"classes: {listed(sizes)}; use a smaller number or, of a folder, leave small classes out with "
            f"data.min_images = {test_per_class + LEAST}"
        )
    parts = [part.tolist() for part in np.array_split(np.array(ordered[:stream_classes]), tasks)]
    return Split(
        train=tuple({c: by_class[c][test_per_class:] for c in part} for part in parts),
        test=tuple({c: by_class[c][:test_per_class] for c in part} for part in parts),
        unseen={c: by_class[c] for c in ordered[stream_classes : -unseen_classes if validation else None]},
        fingerprint=fingerprint,
    )


def _class_order(classes: int, unseen: int, order: str, seed: int, groups: Sequence[int] | None) -> list[int]:
    """Stream classes in their order of arrival, then the unseen ones."""
    if order == "natural":
        return list(range(classes))
    shuffled = torch.randperm(classes, generator=generator("classes", seed)).tolist()
    if order == "seeded":
        return shuffled
    if groups is None:
        raise InputError("stream.order = grouped: this data set has no groups of classes; use seeded or natural")
    members: dict[int, list[int]] = {}
    for c in shuffled:
        members.setdefault(groups[c], []).append(c)
    in_turn = [c for row in zip_longest(*members.values()) for c in row if c is not None]
    held_out = in_turn[:unseen]
    return [c for group in members.values() for c in group if c not in held_out] + held_out


def _rows_by_class(labels: np.ndarray, order: str, seed: int) -> Rows:
    """The rows of each class; the first ones will be its test images."""
    found: Rows = {}
    for c in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == c)
        if order != "natural":
            rows = rows[torch.randperm(len(rows), generator=generator("images", seed, c)).numpy()]
        found[c] = rows.tolist()
    return found
