"""A frozen encoder and a classifier whose arithmetic is exact: nothing was trained, and sums are all that is known."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from episodica.classifier.recogniser import Recogniser, Strange
from episodica.engine.image_encoder import ImageEncoder
from episodica.errors import InputError
from episodica.learners.exact import FALSE_REJECTS, ExactClassifier
from episodica.learners.statistics import Statistics, points


@dataclass(frozen=True, eq=False)
class ExactRecogniser(Recogniser):
    encoder: ImageEncoder
    statistics: Statistics  # of the model's own classes
    support: Mapping[str, Tensor] | None = None  # points of other classes, to answer with instead
    rate: float = FALSE_REJECTS

    @property
    def image_size(self) -> int:  # type: ignore[override]
        return self.encoder.size

    @property
    def names(self) -> tuple[str, ...]:
        return self.classifier.names

    def embed(self, images: Tensor) -> Tensor:
        return self.encoder.embed_pixels(images.permute(0, 2, 3, 1).contiguous().numpy())

    def only(self, support: Mapping[str, Tensor]) -> "ExactRecogniser":
        empty = [name for name, vectors in support.items() if not len(vectors)]
        if empty:
            raise InputError(f'class "{empty[0]}" has no image: give at least one')
        return replace(self, support={name: points(vectors) for name, vectors in support.items()})

    def rejecting(self, rate: float) -> "ExactRecogniser":
        return replace(self, rate=rate)

    def probabilities(self, vectors: Tensor) -> Tensor:
        return self.classifier.probabilities(points(vectors))

    def strange(self, vectors: Tensor) -> Strange:
        values = self.classifier.strangeness(points(vectors))
        return Strange(values, torch.full_like(values, self.classifier.limit(self.rate)))

    @cached_property
    def classifier(self) -> ExactClassifier:
        if self.support is None:
            return ExactClassifier.fitted(self.statistics)
        return ExactClassifier.for_other_classes(self.statistics).with_classes(self.support)
