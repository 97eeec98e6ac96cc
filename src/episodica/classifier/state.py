"""One state of a model, as it is written: plain records, checked when they are read."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from episodica.classifier.calibration import UNCALIBRATED, Calibration
from episodica.classifier.recogniser import Recogniser
from episodica.config import RunConfig, resolve_stored
from episodica.config.sections import Section
from episodica.errors import InputError
from episodica.lazy_torch import Tensor

TRAINED_FORMAT, EXACT_FORMAT = 1, 2
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
    format: int = TRAINED_FORMAT
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
    def mentioned(self) -> set[str]:
        """Classes that it knows, and those that are only in its history any more."""
        return {*self.names, *(name for step in self.history for name in step.classes)}

    @property
    def digests(self) -> set[str]:
        """Of all images that belong to this state."""
        return {digest for stored in self.classes for digest in (*stored.images, *stored.held_out)}

    @property
    def kept_of_a_class(self) -> int | None:
        """How many images of a remembered class are kept; none: all of them."""
        return None

    def of_kind(self, kind: str) -> list[StoredClass]:
        return [stored for stored in self.classes if stored.kind == kind]

    def kind_of(self, name: str) -> str | None:
        return next((stored.kind for stored in self.classes if stored.name == name), None)

    def with_remembered(self, images: Mapping[str, tuple[str, ...]], when: str) -> Self:
        """Classes that are there already are replaced."""
        kept = {name: tuple(dict.fromkeys(digests)) for name, digests in images.items()}
        added = (StoredClass(name=name, kind="remembered", images=digests) for name, digests in kept.items())
        step = Step(what="remember", when=when, classes=tuple(images))
        stay = (stored for stored in self.classes if stored.name not in images)
        return self.model_copy(update={"classes": (*stay, *added), "history": (*self.history, step)})

    def without(self, name: str) -> Self:
        """As if that class had never come, but for the weights."""
        history = [
            step.model_copy(update={"classes": tuple(n for n in step.classes if n != name)}) for step in self.history
        ]
        kept = tuple(stored for stored in self.classes if stored.name != name)
        return self.model_copy(update={"classes": kept, "history": tuple(step for step in history if step.classes)})


class ModelState(ABC):
    """A consistent state in memory: nothing that happens to the folder afterwards changes it."""

    FILES: ClassVar[tuple[str, ...]]  # beside the record

    id: str

    @property
    @abstractmethod
    def record(self) -> StateRecord: ...

    @property
    def classes(self) -> tuple[StoredClass, ...]:
        return self.record.classes

    @property
    def history(self) -> tuple[Step, ...]:
        return self.record.history

    @cached_property
    def config(self) -> RunConfig:
        return resolve_stored(self.record.config)

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """That training has made, and from which more training begins."""
        return {}

    @property
    def exact(self) -> bool:
        """Whether a class that is forgotten leaves no trace."""
        return False

    @property
    def keeps_points(self) -> bool:
        """Whether it has what each of its images became, so that each can be left out in turn."""
        return False

    @property
    def encoder_digests(self) -> set[str]:
        """Of the weights in the folder that it needs beside its own files."""
        return set()

    @abstractmethod
    def files(self) -> dict[str, bytes]: ...

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

    @abstractmethod
    def _tried_recogniser(self) -> Recogniser:
        """With one image embedded: what comes from a file may have any shape and any value."""

    @abstractmethod
    def images_of(self, stored: StoredClass) -> int:
        """From how many images a class is known."""

    @abstractmethod
    def remembering(self, vectors: Mapping[str, np.ndarray], images: Mapping[str, tuple[str, ...]], when: str) -> Self:
        """With classes that are known from a few images: their embeddings [k, D], and the digests of the first ones,
        which are kept."""

    @abstractmethod
    def without(self, name: str) -> Self:
        """Without a class, which may be among those known or not."""
