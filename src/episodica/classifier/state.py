"""One state of a model, as it is written: plain records, checked when they are read."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

import torch
from pydantic import Field
from torch import Tensor

from episodica.classifier.calibration import UNCALIBRATED, Calibration
from episodica.classifier.recogniser import KnownClass, Recogniser
from episodica.config import RunConfig, resolve
from episodica.config.sections import Section
from episodica.engine.checkpoint import restore_module
from episodica.engine.experiment import new_learner
from episodica.errors import InputError

FORMAT = 1
LARGEST_IMAGE = 1024  # pixels a side


class Measured(Section):
    """What a model could do after a call, on images that it was never trained on. Accuracies are fractions."""

    images: int
    """held-out images of all classes"""
    accuracy: float | None
    """of them, told apart among all known classes"""
    known: int | None = None
    """how many classes that were; models of earlier versions do not say"""
    by_session: dict[int, float]
    """held-out images of the classes of each session, told apart among the classes that were learned by its end"""
    forgetting: float | None
    """mean over earlier sessions of the best such accuracy so far, less the present one"""
    way: int
    """classes of a few-shot question; 0 where none could be asked"""
    shots: int
    few_shot: float | None
    """learned classes in few-shot questions: exemplars are support, held-out images are asked"""
    unseen: float | None
    """the same for classes that were held out of training"""
    unseen_way: int
    unknown_auroc: float | None
    """how often an image of a class that the model does not know looks stranger than one of a class that it does"""


class Step(Section):
    """One line of the history."""

    what: Literal["learn", "remember"]
    when: str
    classes: tuple[str, ...]
    settings: dict[str, Any] = Field(default_factory=dict)
    measured: Measured | None = None


class StoredClass(Section):
    name: str
    kind: Literal["learned", "remembered", "unseen"]
    """by training; from a few images; held out of training to measure on, and known from a few images like those"""
    session: int | None = None
    """the call that learned it, counted from 1"""
    images: tuple[str, ...]
    """exemplars or support images, by the digest of their files"""
    distances: tuple[float, ...] | None = None
    """of exemplars to their class mean, where the memory asked"""
    held_out: tuple[str, ...] = ()
    """images that measure and calibrate, never trained on"""


class StateRecord(Section):
    format: int = FORMAT
    config: dict[str, Any]
    """the settings of the last call to learn; backbone, learner and image size are those of the first"""
    sessions: int
    classes: tuple[StoredClass, ...]
    keep: int | None = None
    """images that a class may leave behind"""
    budget: int | None = None
    """or all classes together; what was asked for last holds until something else is"""
    calibration: Calibration = UNCALIBRATED
    history: tuple[Step, ...] = ()

    @property
    def names(self) -> list[str]:
        return [stored.name for stored in self.classes]

    @property
    def digests(self) -> set[str]:
        """Of all images that belong to this state."""
        return {digest for stored in self.classes for digest in (*stored.images, *stored.held_out)}

    def of_kind(self, kind: str) -> list[StoredClass]:
        return [stored for stored in self.classes if stored.kind == kind]

    def kind_of(self, name: str) -> str | None:
        return next((stored.kind for stored in self.classes if stored.name == name), None)

    def without(self, name: str) -> Self:
        """As if that class had never come, but for the weights."""
        history = [
            step.model_copy(update={"classes": tuple(n for n in step.classes if n != name)}) for step in self.history
        ]
        kept = tuple(stored for stored in self.classes if stored.name != name)
        return self.model_copy(update={"classes": kept, "history": tuple(step for step in history if step.classes)})


class ModelState:
    """A consistent state in memory: nothing that happens to the folder afterwards changes it."""

    def __init__(self, id: str, record: StateRecord, weights: Mapping[str, Tensor], prototypes: Tensor) -> None:
        if len(prototypes) != len(record.classes):
            raise ValueError(f"{len(prototypes)} prototypes of {len(record.classes)} classes")
        self.id, self.record = id, record
        self.weights, self.prototypes = weights, prototypes  # prototypes [C, D] in the order of the classes

    @classmethod
    def blank(cls, record: StateRecord, weights: Mapping[str, Tensor]) -> "ModelState":
        """Weights and settings, without any class."""
        return cls("", record.model_copy(update={"classes": ()}), weights, torch.empty(0))

    @property
    def classes(self) -> tuple[StoredClass, ...]:
        return self.record.classes

    @property
    def history(self) -> tuple[Step, ...]:
        return self.record.history

    @cached_property
    def config(self) -> RunConfig:
        return resolve(self.record.config)

    def recogniser(self) -> Recogniser:
        return self._recogniser

    @cached_property
    def _recogniser(self) -> Recogniser:
        try:
            return self._tried_recogniser()
        except InputError:
            raise
        except (RuntimeError, ValueError, LookupError, TypeError) as error:
            raise InputError(
                f"the state {self.id} does not fit together ({str(error).partition(chr(10))[0]}): restore the model "
                "from a copy"
            ) from None

    def _tried_recogniser(self) -> Recogniser:
        """With one image embedded: weights come from a file, and may have any shape and any value."""
        size = self.config.image_size
        if size > LARGEST_IMAGE:
            raise ValueError(f"images of {size} x {size} pixels, more than {LARGEST_IMAGE} x {LARGEST_IMAGE}")
        learner = new_learner(self.config, torch.device("cpu"), pretrained=False)
        restore_module("learner", learner, self.weights)
        lines = zip(self.classes, self.prototypes, strict=True)
        known = tuple(KnownClass(c.name, point, len(c.images), c.kind == "learned") for c, point in lines)
        found = Recogniser(learner.eval(), size, self.config.augment, known, self.record.calibration)
        (vector,) = found.embed(torch.zeros(1, 3, size, size, dtype=torch.uint8))
        if not all(bool(t.isfinite().all()) for t in (vector, self.prototypes, *self.weights.values())):
            raise ValueError("weights or classes are not finite numbers")
        if known and known[0].prototype.shape != vector.shape:
            raise ValueError(f"classes of {list(known[0].prototype.shape)} numbers, images of {list(vector.shape)}")
        return found

    def without(self, name: str) -> "ModelState":
        kept = [i for i, stored in enumerate(self.classes) if stored.name != name]
        return ModelState("", self.record.without(name), self.weights, self.prototypes[kept])
