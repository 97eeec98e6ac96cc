"""A trained encoder, the classes it knows as points among its embeddings, and what counts as near.

Some models compare images by direction: their embeddings are scaled to length 1, and a class is the mean of such. Its
direction decides which class an image belongs to; how strange the image is follows from the distance to the mean
itself, because only there does the unit of `calibration.strangeness` hold (a direction has lost how far the images of
its class are spread).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from episodica.classifier.calibration import FALSE_REJECTS, UNCALIBRATED, Calibration, strangeness
from episodica.classifier.recogniser import Places, Recogniser, Strange
from episodica.config.sections import AugmentConfig
from episodica.data import augment
from episodica.engine.device import device_of
from episodica.engine.embedder import embed_chunks, folded
from episodica.errors import InputError
from episodica.learners.learner import Learner


@dataclass(frozen=True, eq=False)
class KnownClass:
    name: str
    prototype: Tensor  # [D], the mean of its embedded images
    images: int  # so many of them
    learned: bool  # by training, or remembered from a few images


@dataclass(frozen=True, eq=False)
class TrainedRecogniser(Recogniser):
    learner: Learner
    image_size: int
    augment: AugmentConfig
    known: tuple[KnownClass, ...] = ()
    calibration: Calibration = UNCALIBRATED
    by_direction: bool = False  # whether lengths of embeddings and of class means say nothing

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(known.name for known in self.known)

    def embed(self, images: np.ndarray) -> np.ndarray:
        """uint8 [M, S, S, 3] -> [M, D], in evaluation mode, in chunks of a fixed size."""
        pixels = torch.from_numpy(images)
        device = device_of(self._encoder)

        def views(rows: Tensor) -> Tensor:
            return augment.plain(pixels[rows].to(device), self.augment)

        if not len(images):
            return np.empty((0, *self.learner.backbone.out_shape(self.image_size)), np.float32)
        return self.compared(embed_chunks(self._encoder, torch.arange(len(images)), views).float()).cpu().numpy()

    def compared(self, vectors: Tensor) -> Tensor:
        """Embeddings, or class means, as they are compared with each other. [..., D]"""
        return F.normalize(vectors, dim=-1) if self.by_direction else vectors

    def only(self, support: Mapping[str, np.ndarray]) -> "TrainedRecogniser":
        """With these classes instead of its own: of each the embeddings of k images, [k, D]."""
        empty = [name for name, vectors in support.items() if not len(vectors)]
        if empty:
            raise InputError(f'class "{empty[0]}" has no image: give at least one')
        means = {name: torch.from_numpy(vectors).mean(0) for name, vectors in support.items()}
        known = (KnownClass(name, mean, len(support[name]), learned=False) for name, mean in means.items())
        return replace(self, known=tuple(known))

    def rejecting(self, rate: float) -> "TrainedRecogniser":
        if rate != FALSE_REJECTS:
            raise InputError(
                f"this model was trained and knows its limits for a rate of {FALSE_REJECTS:g} alone, not for "
                f"{rate:g}: leave the rate out, and compare `strangeness` with a limit of your own"
            )
        return self

    def among(self, names: Collection[str]) -> "TrainedRecogniser":
        """With these of its classes alone."""
        return replace(self, known=tuple(known for known in self.known if known.name in names))

    def scores(self, vectors: Tensor) -> Tensor:
        """Minus the squared distance of each image to each class, as they are compared. [M, D] -> [M, C]"""
        return self.scores_among(self._prototypes[None], vectors[None])[0]

    def scores_among(self, means: Tensor, vectors: Tensor) -> Tensor:
        """The same of any classes, given by their means. [B, N, D], [B, M, D] -> [B, M, N]"""
        return -self.distances(self.compared(means), vectors)

    def distances(self, means: Tensor, vectors: Tensor) -> Tensor:
        """The squared distance of each image to each mean. [B, N, D], [B, M, D] -> [B, M, N]"""
        return -self.learner.scores(means, vectors).clamp(max=0)

    @property
    def temperature(self) -> float:
        learned = any(known.learned for known in self.known)
        return self.calibration.temperature if learned else self.calibration.few_shot_temperature

    def probabilities(self, vectors: np.ndarray) -> np.ndarray:
        return (self.scores(torch.from_numpy(vectors)) / self.temperature).softmax(-1).numpy()

    def strangeness(self, vectors: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The nearest class of each image, and how far it is for a class known from so many images; with `hidden` [M]
        as if one class were not known, another for each image.

        From a learned class half the distance to the middle of all learned ones is taken off: images that are far from
        everything, because they are rich in contrast, are no stranger for that.
        """
        distances = self.distances(self._prototypes[None], vectors[None])[0]
        if hidden is not None:
            distances.scatter_(1, hidden[:, None], torch.inf)
        learned = torch.tensor([known.learned for known in self.known])
        if bool(learned.any()):
            off_middle = (vectors - self._prototypes[learned].mean(0)).square().sum(1)
            closest = distances.argmin(1)
            distances -= (learned[closest] * off_middle / 2)[:, None]
        return strangeness(distances, self._images)

    def strange(self, vectors: np.ndarray) -> Strange:
        closest, strange = self.strangeness(torch.from_numpy(vectors))
        return Strange(strange.numpy(), self._limits[closest].numpy())

    def places(self, vectors: np.ndarray) -> Places:
        """Embeddings as they are. Two images of a class are as far apart as one is from a class known from the other
        alone, and the limit for those is in units of that distance (see `strangeness`)."""
        limit = self.calibration.remembered
        return Places(vectors.reshape(len(vectors), -1), None if limit is None else limit * (1 + 1 / 1))

    @cached_property
    def _encoder(self) -> Learner:
        return folded(self.learner)

    @cached_property
    def _prototypes(self) -> Tensor:
        return torch.stack([known.prototype for known in self.known])

    @cached_property
    def _images(self) -> Tensor:
        return torch.tensor([float(known.images) for known in self.known])

    @cached_property
    def _limits(self) -> Tensor:
        by_kind = {True: self.calibration.learned, False: self.calibration.remembered}
        limits = [by_kind[known.learned] for known in self.known]
        return torch.tensor([torch.inf if limit is None else limit for limit in limits])
