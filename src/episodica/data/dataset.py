"""The contract of a data set: files of some layout become one array of images with labels."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from episodica.registry import Component


@dataclass(frozen=True, eq=False)
class Arrays:
    """A data set as the stream needs it: n images of C classes, of one size."""

    images: np.ndarray  # uint8 [n, H, W, 3], in memory or memory-mapped
    labels: np.ndarray  # int64 [n], 0 .. C - 1
    class_names: tuple[str, ...]
    fingerprint: str  # of the content: two runs with the same fingerprint and split saw the same images
    groups: tuple[int, ...] | None = None  # of each class, where classes come in families


class Dataset(Component, kind="dataset"):
    """Reads one layout. The class variables are the paper's numbers for this set."""

    root: Annotated[str | None, Field(description="folder or archive with the files")] = None
    size: Annotated[int | None, Field(ge=16, description="pixels of a side; by default the set's own")] = None

    test_per_class: ClassVar[int]
    unseen_classes: ClassVar[int]

    def load(self) -> Arrays:
        raise NotImplementedError
