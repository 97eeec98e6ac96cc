"""A model in Python, in scikit-learn's words."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Self
from weakref import finalize

import numpy as np
from PIL import Image
from torch import Tensor

from episodica.classifier.class_folders import class_name
from episodica.classifier.images import Picture, encoded, stacked
from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import Existing, LearnOptions, Method
from episodica.classifier.plan import plan_call
from episodica.classifier.recogniser import Recogniser
from episodica.classifier.state import ModelState
from episodica.data.decode import Encoded
from episodica.errors import InputError

BATCH = 250

Pictures = Sequence[Picture] | np.ndarray | Tensor
Labels = Sequence[Any] | np.ndarray


class NotFitted(InputError, AttributeError):
    """Asked before it has learned anything."""


class FewShotClassifier:
    """Learns classes as they arrive and recognises new ones from a few images each.

    Arguments are hyper-parameters: images that each class leaves behind (`keep`) or all together (`budget`), the
    method, the length of training, and any field of the config by its path. Images are paths, encoded bytes, PIL
    images, arrays [H, W, 3] or tensors [3, H, W], of uint8 or of floats between 0 and 1. Labels become names: `str`,
    with accents composed.
    """

    def __init__(
        self,
        *,
        keep: int | None = None,
        budget: int | None = None,
        method: Method = "erd",
        existing: Existing = "merge",
        epochs: int | None = None,
        unseen: int | None = 0,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.keep, self.budget = keep, budget
        self.method: Method = method
        self.existing: Existing = existing
        self.epochs, self.unseen, self.settings = epochs, unseen, settings

    def fit(self, X: Pictures, y: Labels) -> Self:  # noqa: N803 - scikit-learn's name
        """Forget everything, then learn these classes by training."""
        self._start_anew()
        return self.partial_fit(X, y)

    def partial_fit(self, X: Pictures, y: Labels) -> Self:  # noqa: N803
        """Learn more classes, with the exemplars of the earlier ones: the next session."""
        folder, options = self._folder(), self._options()
        with folder.writing():
            learn(folder, plan_call(folder, _by_class(X, y), options), lambda event: None)
        return self

    def remember(self, X: Pictures, y: Labels) -> Self:  # noqa: N803
        """Know more classes by one or a few images of each, without training."""
        self._require_fitted()
        self._folder().remember(_by_class(X, y))
        return self

    def predict(self, X: Pictures) -> np.ndarray:  # noqa: N803
        """The likeliest class of each image."""
        return self.classes_[self.predict_proba(X).argmax(1)]

    def predict_proba(self, X: Pictures) -> np.ndarray:  # noqa: N803
        """The probability of each class, in the order of `classes_`. [n, C]"""
        recogniser = self._recogniser()
        order = np.argsort([known.name for known in recogniser.known])
        rows = [recogniser.probabilities(vectors).numpy() for vectors in _embedded(recogniser, X)]
        return np.concatenate(rows)[:, order] if rows else np.empty((0, len(order)))

    def unknown(self, X: Pictures) -> np.ndarray:  # noqa: N803
        """Whether nothing known fits, by the limits that the model has calibrated. [n]"""
        recogniser = self._recogniser()
        rows = [recogniser.unknown(vectors).numpy() for vectors in _embedded(recogniser, X)]
        return np.concatenate(rows) if rows else np.empty(0, dtype=bool)

    def score(self, X: Pictures, y: Labels) -> float:  # noqa: N803
        """The share of images whose class is the likeliest one."""
        return float((self.predict(X) == np.array([_name(label) for label in y])).mean())

    @property
    def classes_(self) -> np.ndarray:
        """The names of all classes, sorted."""
        return np.array(sorted(self.state_.record.names))

    @property
    def state_(self) -> ModelState:
        """The present state of the model: its classes, its history and what it measured."""
        self._require_fitted()
        return self._folder().state()

    def save(self, path: str | Path) -> Self:
        """Write the model as a folder, as `episodica learn` makes it."""
        self._require_fitted()
        target = Path(path)
        if target.exists():
            raise InputError(f"{target} exists: choose another name, or remove it first")
        part = target.with_name(f".{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(self._folder().path, part, ignore=shutil.ignore_patterns(".lock", "work"))
        part.rename(target)
        return self

    @classmethod
    def load(cls, path: str | Path) -> "FewShotClassifier":
        """A copy of a model folder: what is learned here changes nothing there until it is saved."""
        model = ModelFolder(path)
        record = model.state().record
        loaded = cls(keep=record.keep, budget=record.budget)
        loaded._start_anew()
        shutil.copytree(model.path, loaded._folder().path, ignore=shutil.ignore_patterns(".lock", "work"))
        return loaded

    _place: Path | None = None

    def _start_anew(self) -> None:
        """A folder that goes with this object."""
        self._place = Path(mkdtemp(prefix="episodica-"))
        finalize(self, shutil.rmtree, self._place, ignore_errors=True)

    def _folder(self) -> ModelFolder:
        if self._place is None:
            self._start_anew()
        assert self._place is not None
        return ModelFolder(self._place / "model")

    def _options(self) -> LearnOptions:
        return LearnOptions(
            keep=self.keep,
            budget=self.budget,
            method=self.method,
            existing=self.existing,
            epochs=self.epochs,
            unseen=self.unseen,
            overrides=self.settings or {},
        )

    def _require_fitted(self) -> None:
        if self._place is None or not self._folder().exists:
            raise NotFitted("this FewShotClassifier has learned nothing yet: call fit first, or load a model")

    def _recogniser(self) -> Recogniser:
        return self.state_.recogniser()


def _require_several(images: Pictures) -> None:
    if isinstance(images, str | bytes | Path | Image.Image):
        raise InputError("this is one image: give a list of images, if only of one")


def _name(label: Any) -> str:
    return class_name(str(label))


def _by_class(images: Pictures, labels: Labels) -> dict[str, list[Encoded]]:
    _require_several(images)
    if len(images) != len(labels):
        raise InputError(f"there are {len(images)} images and {len(labels)} labels: give one label for each image")
    found: dict[str, list[Encoded]] = {}
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        found.setdefault(_name(label), []).append(encoded(image, f"image {i}"))
    return found


def _embedded(recogniser: Recogniser, images: Pictures) -> list[Tensor]:
    _require_several(images)
    batches = (images[start : start + BATCH] for start in range(0, len(images), BATCH))
    return [recogniser.embed(stacked(batch, recogniser.image_size)) for batch in batches]
