"""The embedded data set: nothing to download, drawn when first asked for and cached."""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from episodica.data.dataset import Arrays, Dataset
from episodica.data.glyph_drawing import alphabet_and_rank, draw
from episodica.data.store import cached

DRAWING = 1  # to be raised with every change of the pixels: cached drawings and fingerprints carry it


class Glyphs(Dataset, name="glyphs"):
    """Characters of five invented alphabets, drawn from a seed: the embedded set, designed to show forgetting."""

    classes: Annotated[int, Field(ge=4, description="number of characters")] = 100
    per_class: Annotated[int, Field(ge=2, description="drawings of each character")] = 600
    seed: Annotated[int, Field(ge=0, description="which alphabets are invented")] = 0

    test_per_class: ClassVar[int] = 100
    unseen_classes: ClassVar[int] = 20

    def load(self) -> Arrays:
        size = self.size or 32
        key = {
            "drawing": DRAWING,
            "classes": self.classes,
            "per_class": self.per_class,
            "seed": self.seed,
            "size": size,
        }
        images = cached("glyphs", key, lambda: draw(self.classes, self.per_class, size, self.seed)[0])
        labels = np.repeat(np.arange(self.classes), self.per_class)
        places = [alphabet_and_rank(c) for c in range(self.classes)]
        names = tuple(f"alphabet {alphabet}, character {rank}" for alphabet, rank in places)
        return Arrays(images, labels, names, repr(key), groups=tuple(alphabet for alphabet, _ in places))
