"""The embedded data set: nothing to download, drawn when first asked for and cached."""

from contextlib import nullcontext
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from episodica.data.cache import Arrays, OnProgress, Source, load_or_build
from episodica.data.dataset import Dataset, silent
from episodica.data.glyph_drawing import alphabet_and_rank, draw

DRAWING = 1  # to be raised with every change of the pixels: cached drawings are found by it


class Glyphs(Dataset, name="glyphs"):
    """Characters of five invented alphabets, drawn from a seed: the embedded set, designed to show forgetting."""

    classes: Annotated[int, Field(ge=4, description="number of characters")] = 100
    per_class: Annotated[int, Field(ge=2, description="drawings of each character")] = 600
    seed: Annotated[int, Field(ge=0, description="which alphabets are invented")] = 0

    native_size: ClassVar[int] = 32

    def test_per_class(self, counts: np.ndarray) -> int:
        return 100

    def unseen_classes(self, classes: int) -> int:
        return 20

    def load(self, on_progress: OnProgress = silent) -> Arrays:
        size = self.size or self.native_size
        settings = {"drawing": DRAWING, "classes": self.classes, "per_class": self.per_class, "seed": self.seed}
        return load_or_build(
            self.name, size, settings, [], lambda: nullcontext(self._drawn(size, on_progress)), on_progress
        )

    def _drawn(self, size: int, on_progress: OnProgress) -> Source:
        on_progress("drawing glyphs", 0, self.classes)
        images, alphabets = draw(self.classes, self.per_class, size, self.seed)
        labels = np.repeat(np.arange(self.classes), self.per_class)
        places = [alphabet_and_rank(c) for c in range(self.classes)]
        names = tuple(f"alphabet {alphabet}, character {rank}" for alphabet, rank in places)
        return Source(images, labels, names, groups=tuple(alphabets.tolist()))
