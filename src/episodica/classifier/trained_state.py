"""A state whose weights were trained: those of encoder and learner, and every class as a point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from episodica.classifier.recogniser import Recogniser
from episodica.classifier.state import LARGEST_IMAGE, ModelState, StateRecord, StoredClass
from episodica.config import most_bytes
from episodica.files.digest import digest_of
from episodica.files.tensors import MOST_HEADER
from episodica.lazy_torch import Tensor, torch

if TYPE_CHECKING:
    from episodica.classifier.trained_recogniser import TrainedRecogniser

WEIGHTS, PROTOTYPES = "weights.safetensors", "prototypes.safetensors"
MOST_OF_A_CLASS = 2**18  # bytes


class TrainedState(ModelState):
    FILES: ClassVar[tuple[str, ...]] = (WEIGHTS, PROTOTYPES)

    def __init__(self, id: str, record: StateRecord, weights: Mapping[str, Tensor], prototypes: Tensor) -> None:
        if len(prototypes) != len(record.classes):
            raise ValueError(f"{len(prototypes)} prototypes of {len(record.classes)} classes")
        self.id, self._record = id, record
        self._weights, self.prototypes = weights, prototypes  # prototypes [C, D] in the order of the classes

    @classmethod
    def blank(cls, record: StateRecord, weights: Mapping[str, Tensor]) -> TrainedState:
        """Weights and settings, without any class."""
        return cls("", record.model_copy(update={"classes": ()}), weights, torch.empty(0))

    @classmethod
    def most(cls, record: StateRecord) -> dict[str, int]:
        """The bytes that each file may have, by what the record says."""
        return {WEIGHTS: most_bytes(record.config), PROTOTYPES: MOST_HEADER + len(record.classes) * MOST_OF_A_CLASS}

    @classmethod
    def from_files(cls, id: str, record: StateRecord, files: Mapping[str, bytes]) -> TrainedState:
        return cls(id, record, decoded(files[WEIGHTS]), decoded(files[PROTOTYPES])["prototypes"])

    @property
    def record(self) -> StateRecord:
        return self._record

    @property
    def weights(self) -> Mapping[str, Tensor]:
        return self._weights

    def files(self) -> dict[str, bytes]:
        return {WEIGHTS: encoded(self.weights), PROTOTYPES: encoded({"prototypes": self.prototypes})}

    def recogniser(self) -> TrainedRecogniser:
        from episodica.classifier.trained_recogniser import TrainedRecogniser

        found = super().recogniser()
        assert isinstance(found, TrainedRecogniser)
        return found

    def _tried_recogniser(self) -> Recogniser:
        from episodica.classifier.trained_recogniser import KnownClass, TrainedRecogniser
        from episodica.engine.checkpoint import restore_module
        from episodica.engine.experiment import new_learner

        size = self.config.image_size
        if size > LARGEST_IMAGE:
            raise ValueError(f"images of {size} x {size} pixels, more than {LARGEST_IMAGE} x {LARGEST_IMAGE}")
        learner = new_learner(self.config, torch.device("cpu"), pretrained=False)
        restore_module("learner", learner, self.weights)
        lines = zip(self.classes, self.prototypes, strict=True)
        known = tuple(KnownClass(c.name, point, self.images_of(c), c.kind == "learned") for c, point in lines)
        config, calibration = self.config, self.record.calibration
        found = TrainedRecogniser(learner.eval(), size, config.augment, known, calibration, config.normalised)
        (vector,) = torch.from_numpy(found.embed(np.zeros((1, size, size, 3), np.uint8)))
        if not all(bool(t.isfinite().all()) for t in (vector, self.prototypes, *self.weights.values())):
            raise ValueError("weights or classes are not finite numbers")
        if known and known[0].prototype.shape != vector.shape:
            raise ValueError(f"classes of {list(known[0].prototype.shape)} numbers, images of {list(vector.shape)}")
        return found

    def images_of(self, stored: StoredClass) -> int:
        return len(stored.images)

    def remembering(
        self, vectors: Mapping[str, np.ndarray], images: Mapping[str, tuple[str, ...]], when: str
    ) -> TrainedState:
        stay = [i for i, stored in enumerate(self.classes) if stored.name not in vectors]
        means = [torch.from_numpy(of_class).mean(0)[None] for of_class in vectors.values()]
        prototypes = torch.cat([self.prototypes[stay], *means])
        return TrainedState("", self.record.with_remembered(images, when), self.weights, prototypes)

    def without(self, name: str) -> TrainedState:
        kept = [i for i, stored in enumerate(self.classes) if stored.name != name]
        return TrainedState("", self.record.without(name), self.weights, self.prototypes[kept])


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    return digest_of(encoded(weights))


def encoded(weights: Mapping[str, Tensor]) -> bytes:
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()})


def decoded(data: bytes) -> dict[str, Tensor]:
    from safetensors.torch import load

    return load(data)
