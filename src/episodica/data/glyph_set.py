"""placeholder"""

from contextlib import nullcontext
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from episodica.data.cache import Arrays, Progress, Source, load_or_build
from episodica.data.dataset import Dataset, silent
from episodica.data.glyphs import draw

VERSION = 1


class Glyphs(Dataset, name="glyphs"):
    """Characters of invented alphabets, drawn from a seed: the embedded set, designed to show forgetting."""

    classes: Annotated[int, Field(ge=4, description="number of characters")] = 100
    per_class: Annotated[int, Field(ge=2, description="drawings of each character")] = 600
    seed: Annotated[int, Field(ge=0, description="which alphabets are invented")] = 0

    native_size: ClassVar[int] = 32

    def test_per_class(self, counts: np.ndarray) -> int:
        return 100

    def unseen_classes(self, classes: int) -> int:
        return 20

    def load(self, tell: Progress = silent) -> Arrays:
        size = self.size or self.native_size
        settings = {"version": VERSION, "classes": self.classes, "per_class": self.per_class, "seed": self.seed}

        def read() -> Source:
            tell("drawing glyphs", 0, 1)
            images, alphabets = draw(self.classes, self.per_class, size, self.seed)
            labels = np.repeat(np.arange(self.classes), self.per_class)
            names = tuple(f"glyph {c}" for c in range(self.classes))
            return Source(images, labels, names, groups=tuple(alphabets.tolist()))

        return load_or_build(self.name, size, settings, [], lambda: nullcontext(read()), tell)
