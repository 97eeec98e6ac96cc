"""A model in Python: labels of any type, sessions, copies, and scikit-learn's tools around it."""

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from episodica import FewShotClassifier, InputError
from episodica.classifier.trained_state import TrainedState

QUICK = {"data.size": 16, "train.episodes": 1, "device": "cpu", "kernels": "torch"}


@pytest.fixture(autouse=True)
def short_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that last a moment need not reach the disk."""
    monkeypatch.setattr("os.fsync", lambda number: None)


@pytest.fixture(scope="module")
def new() -> Callable[..., FewShotClassifier]:
    return lambda **params: FewShotClassifier(epochs=1, settings=QUICK, **params)


@pytest.fixture(scope="module")
def train(glyphs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Six images of each of three classes, whose numbers do not sort as their names do."""
    return glyphs[:3, :6].reshape(-1, 16, 16, 3), np.repeat([30, 4, 100], 6)


@pytest.fixture(scope="module")
def taught(new, train) -> FewShotClassifier:
    return new().fit(*train)


@pytest.fixture
def fitted(taught) -> FewShotClassifier:
    """To be changed: a copy costs a tenth of the training."""
    return copy.deepcopy(taught)


class Drawings:
    """A data set as torch's are: `__len__` and `__getitem__`, and no end to iteration."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, form: str = "array") -> None:
        self.images, self.labels, self.form = images, labels, form

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int):
        image = self.images[i % len(self.images)]
        match self.form:
            case "array":
                return image, int(self.labels[i])
            case "picture":
                return Image.fromarray(image), np.int64(self.labels[i])
            case _:
                return torch.from_numpy(image).permute(2, 0, 1) / 255, torch.tensor(self.labels[i])


@pytest.mark.parametrize("labels", [np.repeat([30, 4, 100], 6), [30] * 6 + [4] * 6 + [100] * 6, ["b"] * 6 + ["a"] * 12])
def test_labels_come_back_in_their_type_and_classes_sorted(labels, new, train):
    images = train[0]
    classifier = new().fit(images, labels)
    expected = np.unique(labels)
    assert classifier.classes_.tolist() == expected.tolist()
    assert classifier.classes_.dtype.kind == classifier.predict(images).dtype.kind == expected.dtype.kind
    assert classifier.score(images, labels) == pytest.approx(np.mean(classifier.predict(images) == np.array(labels)))


def test_probabilities_follow_the_sorted_labels_and_not_the_names(fitted, train):
    images = train[0]
    answers = fitted.state_.recogniser().answers(fitted.transform(images))
    probabilities = fitted.predict_proba(images)
    for row, answer in zip(probabilities, answers, strict=True):
        assert row == pytest.approx([answer.scores[str(label)] for label in (4, 30, 100)])
    assert fitted.predict(images).tolist() == fitted.classes_[probabilities.argmax(1)].tolist()


def test_text_is_composed_as_names_of_folders_are(glyphs, new):
    composed, apart = "caf\u00e9", "cafe\u0301"
    images = np.concatenate([glyphs[0, :4], glyphs[1, :4]])
    classifier = new().fit(images, [apart, composed, apart, composed, "b", "b", "b", "b"])
    assert classifier.classes_.tolist() == ["b", composed]
    answers = classifier.predict(images)
    assert classifier.score(images, [apart if name == composed else name for name in answers]) == 1


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "a"] * 9, "mix of text and numbers"),
        ([0.5] * 18, "Unknown label type: continuous"),
        ([[1]] * 18, "1d array"),
        ([1] * 3, "18 images and 3 labels"),
        (None, "requires y"),
        (np.array([object()] * 18), "Unknown label type"),
    ],
)
def test_labels_that_are_none_are_refused(labels, message, new, train):
    with pytest.raises(InputError, match=message):
        new().fit(train[0], labels)


@pytest.mark.parametrize("verb", ["fit", "partial_fit", "remember"])
def test_a_class_without_any_usable_image_is_refused_by_name(verb, new, train, glyphs):
    model = new().fit(*train)
    before = model.classes_.tolist()
    images, damaged = [*glyphs[3, :6], *glyphs[4, :2]], [b"no image"] * 2
    for useless in (damaged, glyphs[3, :1]):  # unreadable, or the same picture as one of class 5
        labels = [5] * 6 + [6] * 2 + [77] * len(useless)
        with pytest.raises(InputError, match=r'no image of class "77" can be used .*leave its label out'):
            getattr(model, verb)([*images, *useless], labels)
    assert model.classes_.tolist() == before


def test_sessions_remember_the_settings_and_the_type_of_labels(fitted, glyphs):
    assert fitted.partial_fit(list(glyphs[3, :6] / 255), [5] * 6) is fitted  # `data.size` is still in the settings
    fitted.remember(glyphs[4, :2], [7, 7])
    assert fitted.classes_.tolist() == [4, 5, 7, 30, 100]
    assert fitted.predict_proba(glyphs[4, 2:6]).sum(1) == pytest.approx(np.ones(4), abs=1e-5)
    with pytest.raises(InputError, match=r"labels are text.*were integers"):
        fitted.partial_fit(glyphs[3, :6], ["five"] * 6)
    fitted.settings = {**QUICK, "data.size": 32}
    with pytest.raises(InputError, match="decided when the model was made"):
        fitted.partial_fit(glyphs[5, :6], [9] * 6)
    assert fitted.classes_.tolist() == [4, 5, 7, 30, 100]  # what failed has changed nothing


def test_classes_may_be_declared_before_their_images_come(new, train, glyphs):
    images, labels = train
    classifier = new().partial_fit(images, labels, classes=[4, 30, 100, 200])
    assert classifier.classes_.tolist() == [4, 30, 100, 200]
    assert (classifier.predict_proba(images)[:, 3] == 0).all()
    with pytest.raises(InputError, match='"5" is not among `classes`'):
        classifier.partial_fit(glyphs[3, :6], [5] * 6)
    with pytest.raises(InputError, match='"5" is not among `classes`'):
        classifier.remember(glyphs[3, :1], [5])
    classifier.partial_fit(glyphs[3, :6], [200] * 6)
    assert (classifier.predict_proba(glyphs[3])[:, 3] > 0).all()


def test_weights_count_in_the_score(fitted, train):
    images, labels = train
    right = fitted.predict(images) == labels
    assert right.any()
    wrong_label = np.where(right, labels, 4)
    weights = np.where(fitted.predict(images) == wrong_label, 3.0, 1.0)
    expected = np.average(fitted.predict(images) == wrong_label, weights=weights)
    assert fitted.score(images, wrong_label, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))], ids=["copy", "pickle"])
def test_copies_answer_alike_and_are_independent(twin, fitted, train, glyphs):
    other = twin(fitted)
    before = fitted.predict_proba(train[0])
    assert (other.predict_proba(train[0]) == before).all()
    other.remember(glyphs[4, :2], [7, 7])
    assert fitted.classes_.tolist() == [4, 30, 100]
    del fitted
    assert other.partial_fit(glyphs[3, :6], [5] * 6).classes_.tolist() == [4, 5, 7, 30, 100]
    assert twin(FewShotClassifier(keep=3)).get_params() == FewShotClassifier(keep=3).get_params()


def test_a_pickle_that_was_tampered_with_is_refused(fitted):
    state = fitted.__getstate__()
    (weights,) = [place for place in state["files"] if place[-1] == "weights.safetensors"]
    state["files"][weights] = state["files"][weights][:-4] + bytes(4)
    with pytest.raises(InputError, match=r"weights\.safetensors is damaged"):
        FewShotClassifier.__new__(FewShotClassifier).__setstate__(state)
    state["files"] = {("..", "evil"): b""}
    with pytest.raises(ValueError, match=r"\.\."):
        FewShotClassifier.__new__(FewShotClassifier).__setstate__(state)


def test_the_model_is_read_once(fitted, train, monkeypatch):
    fitted.predict(train[0])
    monkeypatch.setattr(TrainedState, "__init__", None)
    fitted.predict(train[0][:1])
    fitted.unknown(train[0][:1])


def test_a_model_is_saved_as_a_folder_of_names(fitted, train, tmp_path):
    images = train[0]
    fitted.save(tmp_path / "saved")
    assert {entry.name for entry in (tmp_path / "saved").iterdir()} == {"model.json", "states", "images", "history"}
    with pytest.raises(InputError, match="exists"):
        fitted.save(tmp_path / "saved")
    names = FewShotClassifier.load(tmp_path / "saved")
    assert names.classes_.tolist() == ["100", "30", "4"]
    assert (names.predict_proba(images)[:, [2, 1, 0]] == fitted.predict_proba(images)).all()
    numbers = FewShotClassifier.load(tmp_path / "saved", label_type=int)
    assert (numbers.predict(images) == fitted.predict(images)).all()
    assert numbers.predict_proba(images[:0]).shape == (0, 3)
    with pytest.raises(InputError, match="give a list of images"):
        numbers.predict("photo.png")
    with pytest.raises(InputError, match="label_type = int"):
        FewShotClassifier.load(names.remember(images[:1], ["x"]).save(tmp_path / "x") and tmp_path / "x", int)


def test_before_it_is_fitted_scikit_learns_error_is_raised(new):
    for error in (NotFittedError, InputError, AttributeError):
        with pytest.raises(error, match="call fit first"):
            new().predict([])


@pytest.mark.parametrize("form", ["array", "picture", "tensor"])
def test_a_data_set_brings_its_labels(form, new, train, taught):
    images, labels = train
    drawings = Drawings(images, labels, form)
    classifier = new().fit(drawings)
    assert (classifier.predict_proba(drawings) == taught.predict_proba(images)).all()
    assert classifier.score(drawings) == classifier.score(images, labels)


def test_parameters_by_name(new):
    classifier = new(keep=5)
    twin = clone(classifier)
    assert isinstance(twin, FewShotClassifier)
    assert twin is not classifier
    assert twin.get_params() == classifier.get_params()
    assert twin.set_params(keep=7, epochs=2).keep == 7
    assert repr(FewShotClassifier(keep=5)) == "FewShotClassifier(keep=5)"
    with pytest.raises(InputError, match='no parameter "kep": did you mean "keep"'):
        twin.set_params(kep=1)


def test_scikit_learns_tools_around_it(new, train):
    images, labels = train
    assert cross_val_score(new(), images, labels, cv=2).shape == (2,)
    search = GridSearchCV(new(), {"keep": [2, 4]}, cv=2).fit(list(images), labels)
    assert search.best_params_["keep"] in (2, 4)
    assert search.predict(images[:2]).dtype == labels.dtype


def test_it_is_the_end_or_a_step_of_a_pipeline(new, train):
    class Mirrored(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):  # noqa: N803
            return self

        def transform(self, X):  # noqa: N803
            return X[:, :, ::-1]

    images, labels = train
    ending = make_pipeline(Mirrored(), new()).fit(images, labels)
    assert ending.classes_.tolist() == [4, 30, 100]
    assert 0 <= ending.score(images, labels) <= 1
    encoder = make_pipeline(new(), LogisticRegression()).fit(images, labels)
    assert encoder.predict(images).dtype == labels.dtype
    assert encoder[0].transform(images).shape == (18, 64)
    assert encoder[0].n_features_in_ == 3 * 16 * 16
