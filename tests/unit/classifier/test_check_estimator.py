"""scikit-learn's own checks of an estimator. They give matrices of numbers, which a subclass draws as small images."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import Tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data

from episodica import FewShotClassifier

PAGE = Path(__file__).parents[3] / "docs" / "python.md"
SIDE = 16

REFUSED = {  # a check that fails, and why it may
    "check_supervised_y_2d": "a column of labels is refused, where scikit-learn flattens it with a warning",
    "check_fit2d_1sample": "the error speaks of images of a class, where the check looks for the word sample",
}
SKIPPED = {  # a check that does not run, and why
    "check_array_api_input": "it runs only with SCIPY_ARRAY_API in the environment, which the tests do not set",
    "check_classifier_data_not_an_array": "it needs pandas, which is not installed for tests",
}


class OfRows(FewShotClassifier):
    """The same estimator for rows of numbers: each number is a stripe of grey in a small image."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        return super().fit(self._images(X, reset=True), y)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:  # noqa: N803
        return super().partial_fit(self._images(X, reset=self._folder is None), y, classes)

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        self._fitted()
        return super().transform(self._images(X))

    @property
    def n_features_in_(self) -> int:
        """Of a row, as scikit-learn's validation notes it."""
        return self._row_length

    @n_features_in_.setter
    def n_features_in_(self, length: int) -> None:
        self._row_length = length

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    def _images(self, rows: Any, *, reset: bool = False) -> np.ndarray:
        """[n, features] -> uint8 [n, SIDE, SIDE, 3]"""
        numbers: Any = validate_data(self, rows, reset=reset, dtype=np.float64)
        grey = np.rint(255 / 16 * np.abs((numbers + 8) % 32 - 16)).astype(np.uint8)  # from -8 to 8, then back
        stripes = np.arange(SIDE) * numbers.shape[1] // SIDE
        return np.broadcast_to(grey[:, None, stripes, None], (len(grey), SIDE, SIDE, 3)).copy()


@pytest.fixture
def short_lived(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Models that last a moment need not reach the disk; and the checks draw from NumPy's global generator."""
    monkeypatch.setattr("os.fsync", lambda number: None)
    state = np.random.get_state()  # noqa: NPY002
    yield
    np.random.set_state(state)  # noqa: NPY002


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # some checks are about warnings of scikit-learn's own
@pytest.mark.usefixtures("short_lived")
def test_an_estimator_as_scikit_learn_checks_it() -> None:
    settings = {"data.size": SIDE, "train.episodes": 1, "device": "cpu", "kernels": "torch"}
    estimator = OfRows(epochs=1, keep=2, settings=settings)
    checks = check_estimator(estimator, expected_failed_checks=REFUSED, on_fail=None)
    failures = {check["check_name"]: check["exception"] for check in checks if check["status"] == "failed"}
    assert failures == {}
    assert {check["check_name"] for check in checks if check["status"] == "xfail"} == set(REFUSED)
    assert {check["check_name"] for check in checks if check["status"] == "skipped"} <= set(SKIPPED)
    assert sum(check["status"] == "passed" for check in checks) > 50


def test_it_says_itself_that_rows_of_numbers_are_no_images() -> None:
    with pytest.warns(SkipTestWarning, match="requires input"):
        checks = check_estimator(FewShotClassifier())
    assert [(check["check_name"], check["status"]) for check in checks] == [("check_estimator_cloneable", "passed")]


def test_the_page_lists_what_is_refused_or_skipped() -> None:
    rows = dict(re.findall(r"^\| `(check_\w+)` \| (.*) \|$", PAGE.read_text(), flags=re.MULTILINE))
    assert rows == REFUSED | SKIPPED
