"""placeholder"""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from episodica.data.dataset import Arrays, Dataset
from episodica.data.glyphs import draw
from episodica.data.store import cached

VERSION = 1


class Glyphs(Dataset, name="glyphs"):
    """Characters of invented alphabets, drawn from a seed: the embedded set, designed to show forgetting."""

    classes: Annotated[int, Field(ge=4, description="number of characters")] = 100
    per_class: Annotated[int, Field(ge=2, description="drawings of each character")] = 600
    seed: Annotated[int, Field(ge=0, description="which alphabets are invented")] = 0

    test_per_class: ClassVar[int] = 100
    unseen_classes: ClassVar[int] = 20

    def load(self) -> Arrays:
        key = {
            "version": VERSION,
            "classes": self.classes,
            "per_class": self.per_class,
            "seed": self.seed,
            "size": self.size or 32,
        }
        images = cached("glyphs", key, lambda: draw(self.classes, self.per_class, self.size or 32, self.seed)[0])
        labels = np.repeat(np.arange(self.classes), self.per_class)
        return Arrays(images, labels, tuple(f"glyph {c}" for c in range(self.classes)), repr(key))
