"""A model in Python, as an estimator of scikit-learn: a thin shell over a model folder and what it answers with."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Self
from weakref import finalize

import numpy as np

from episodica.classifier.estimator import Estimator, not_fitted
from episodica.classifier.images import stacked
from episodica.classifier.labels import Labels, label_array, merged, names_of
from episodica.classifier.learn import learn
from episodica.classifier.model_copy import Files, read_model, write_model
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import Adapt, Existing, LearnOptions, Method
from episodica.classifier.picture_input import Pictures, images_and_labels, in_batches, usable
from episodica.classifier.plan import plan_call
from episodica.classifier.sharing.pull import local_place
from episodica.classifier.state import ModelState
from episodica.data.pairs import Pairs
from episodica.errors import InputError
from episodica.files.door import Folder


class FewShotClassifier(Estimator):
    """Learns classes as they arrive and recognises new ones from a few images each.

    Arguments are hyper-parameters: images that each class leaves behind (`keep`) or all together (`budget`), the
    method, the length of training, whether an adapter is trained over a frozen encoder (`adapt`), and any field
    of the config by its path. Images are paths, encoded bytes, PIL images, arrays [H, W, 3] or tensors [3, H, W], of
    uint8 or of floats between 0 and 1; or, with their labels, a data set whose items are (image, label). Labels are
    text or integers, and come back as what they were.

    `classes_` are all labels, sorted, and `n_features_in_` the numbers of an image as the model sees it.
    """

    classes_: np.ndarray
    _folder: ModelFolder | None = None
    _state: ModelState | None = None
    _declared: np.ndarray | None = None

    def __init__(
        self,
        *,
        keep: int | None = None,
        budget: int | None = None,
        method: Method | None = None,
        existing: Existing = "merge",
        epochs: int | None = None,
        unseen: int = 0,
        adapt: Adapt | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.keep, self.budget = keep, budget
        self.method: Method | None = method
        self.existing: Existing = existing
        self.epochs, self.unseen, self.settings = epochs, unseen, settings
        self.adapt: Adapt | None = adapt

    def fit(self, X: Pictures | Pairs, y: Labels | None = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Forget everything, then learn these classes by training."""
        images, labels = images_and_labels(X, y)
        self._learn(_new_folder(self), None, images, labels)
        self._declared = None
        return self

    def partial_fit(
        self,
        X: Pictures | Pairs,  # noqa: N803
        y: Labels | None = None,
        classes: Labels | None = None,
    ) -> Self:
        """Learn more classes, with the exemplars of the earlier ones: the next session.

        `classes` may name all labels that will ever come. Then `classes_` holds them from the start, each with
        probability 0 until its first images, and other labels are refused.
        """
        images, labels = images_and_labels(X, y)
        declared = self._declared if classes is None else np.unique(label_array(classes))
        if declared is not None:
            self._require_declared(labels, declared)
        known = self.classes_ if self._folder is not None else None
        self._learn(self._folder or _new_folder(self), known, images, labels, declared)
        self._declared = declared
        return self

    def remember(self, X: Pictures | Pairs, y: Labels | None = None) -> Self:  # noqa: N803
        """Know more classes by one or a few images of each, without training."""
        images, labels = images_and_labels(X, y)
        folder = self._fitted()[0]
        if self._declared is not None:
            self._require_declared(labels, self._declared)
        classes = merged(self.classes_, labels)
        self._state = folder.remember(usable(images, labels))
        self.classes_ = classes
        return self

    def predict(self, X: Pictures | Pairs) -> np.ndarray:  # noqa: N803
        """The likeliest class of each image."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(1)]

    def predict_proba(self, X: Pictures | Pairs) -> np.ndarray:  # noqa: N803
        """The probability of each class, in the order of `classes_`. [n, C]"""
        recogniser = self.state_.recogniser()
        place = {name: i for i, name in enumerate(names_of(self.classes_))}
        vectors = self.transform(X)
        probabilities = np.zeros((len(vectors), len(self.classes_)), dtype=np.float32)
        probabilities[:, [place[name] for name in recogniser.names]] = recogniser.probabilities(vectors)
        return probabilities

    def transform(self, X: Pictures | Pairs) -> np.ndarray:  # noqa: N803
        """The vector of each image, as the encoder sees it. [n, D]"""
        recogniser = self.state_.recogniser()
        batches = [recogniser.embed(stacked(batch, recogniser.image_size)) for batch in in_batches(X)]
        return np.concatenate([recogniser.embed(stacked([], recogniser.image_size)), *batches])

    def fit_transform(self, X: Pictures | Pairs, y: Labels | None = None) -> np.ndarray:  # noqa: N803
        """Learn these classes, and the vector of each image after that. [n, D]"""
        return self.fit(X, y).transform(X)

    def unknown(self, X: Pictures | Pairs) -> np.ndarray:  # noqa: N803
        """Whether nothing known fits, by the limits that the model has calibrated. [n]"""
        return self.state_.recogniser().unknown(self.transform(X))

    def score(
        self,
        X: Pictures | Pairs,  # noqa: N803
        y: Labels | None = None,
        sample_weight: Labels | None = None,
    ) -> float:
        """The share of images whose class is the likeliest one, or of their weight."""
        self._fitted()
        images, labels = images_and_labels(X, y)
        right = np.array(names_of(self.predict(images))) == np.array(names_of(labels))
        return float(np.average(right, weights=sample_weight))

    @property
    def state_(self) -> ModelState:
        """The present state of the model: its classes, its history and what it measured."""
        return self._fitted()[1]

    @property
    def n_features_in_(self) -> int:
        """Numbers of an image as the model sees it: three for each pixel."""
        return 3 * self.state_.config.image_size**2

    def __sklearn_is_fitted__(self) -> bool:
        return self._folder is not None

    def save(self, path: str | Path) -> Self:
        """Write the model as a folder, as `episodica learn` makes it."""
        folder, target = self._fitted()[0], Path(path)
        if target.exists():
            raise InputError(f"{target} exists: choose another name, or remove it first")
        part = target.with_name(f".{target.name}.part")
        Folder(target.parent).remove_tree(part.name)
        write_model(read_model(folder.path), part)
        part.rename(target)
        return self

    @classmethod
    def load(cls, path: str | Path, label_type: type = str) -> Self:
        """A copy of a model folder: what is learned here changes nothing there until it is saved.

        A folder knows its classes by name; `label_type=int` makes numbers of them, where numbers were learned.
        """
        place = local_place(path)
        record = ModelFolder(place).state().record
        loaded = cls(keep=record.keep, budget=record.budget)
        loaded._take(read_model(place))
        try:
            loaded.classes_ = np.unique(label_array([label_type(name) for name in record.names]))
        except (TypeError, ValueError) as error:
            raise InputError(f"label_type = {label_type.__name__}: {error}; leave it out for names") from None
        return loaded

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: the model as the bytes of its files, read back as those of any folder."""
        kept = {name: value for name, value in vars(self).items() if name not in ("_folder", "_state")}
        return {"attributes": kept, "files": None if self._folder is None else read_model(self._folder.path)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state["attributes"])
        if state["files"] is not None:
            self._take(state["files"])

    def _learn(
        self,
        folder: ModelFolder,
        known: np.ndarray | None,
        images: Pictures,
        labels: np.ndarray,
        declared: np.ndarray | None = None,
    ) -> None:
        """Nothing of this object changes where learning fails."""
        classes = merged(merged(known, labels), labels if declared is None else declared)
        options = LearnOptions(
            keep=self.keep,
            budget=self.budget,
            method=self.method,
            existing=self.existing,
            epochs=self.epochs,
            unseen=self.unseen,
            adapt=self.adapt,
            overrides=self.settings or {},
        )
        arriving = usable(images, labels)
        with folder.writing():
            state = learn(folder, plan_call(folder, arriving, options), lambda event: None)
        self._folder, self._state, self.classes_ = folder, state, classes

    def _require_declared(self, labels: np.ndarray, declared: np.ndarray) -> None:
        foreign = sorted(set(names_of(labels)) - set(names_of(declared)))
        if foreign:
            raise InputError(f'"{foreign[0]}" is not among `classes`: name every label there, or leave `classes` out')

    def _fitted(self) -> tuple[ModelFolder, ModelState]:
        if self._folder is None or self._state is None:
            raise not_fitted("this FewShotClassifier has learned nothing yet: call fit first, or load a model")
        return self._folder, self._state

    def _take(self, files: Files) -> None:
        folder = _new_folder(self)
        write_model(files, folder.path)
        self._folder, self._state = folder, folder.state()


def _new_folder(owner: object) -> ModelFolder:
    """A folder that goes with its owner."""
    place = Path(mkdtemp(prefix="episodica-"))
    finalize(owner, shutil.rmtree, place, ignore_errors=True)
    return ModelFolder(place / "model")
