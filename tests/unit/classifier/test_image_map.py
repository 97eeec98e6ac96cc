"""Images that are alike lie near each other in the plane."""

import numpy as np
import pytest

from episodica.classifier import image_map
from episodica.classifier.image_map import in_the_plane


def heaps(count: int, each: int, width: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(count, width))
    labels = np.repeat(np.arange(count), each)
    return centres[labels] + 0.5 * rng.normal(size=(len(labels), width)), labels


def of_one_heap(places: np.ndarray, labels: np.ndarray) -> float:
    """The share of images whose nearest neighbour is of the same heap."""
    distances = np.square(places[:, None] - places).sum(-1)
    np.fill_diagonal(distances, np.inf)
    return float((labels[distances.argmin(1)] == labels).mean())


def test_heaps_stay_together_and_nothing_is_drawn() -> None:
    rows, labels = heaps(6, 10)
    places = in_the_plane(rows)
    assert of_one_heap(places, labels) == 1
    assert np.array_equal(places, in_the_plane(rows))
    assert np.abs(places).max() == pytest.approx(1)


@pytest.mark.parametrize("classes", [3, 4, 5, 8])
def test_few_images_fill_the_map(classes: int) -> None:
    """None is thrown so far out that the others are a heap in a corner."""
    rows, labels = heaps(classes, 8, 200)
    places = in_the_plane(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    far = np.linalg.norm(places - np.median(places, 0), axis=1)
    assert far.max() < 3 * np.median(far)
    assert of_one_heap(places, labels) == 1


def test_many_images_are_placed_between_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_map, "EXACT", 30)
    rows, labels = heaps(4, 25)
    assert of_one_heap(in_the_plane(rows), labels) > 0.95


@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize("same", [False, True])
def test_few_images_and_copies_have_a_place(count: int, same: bool) -> None:
    rows = np.ones((count, 8)) if same else heaps(1, count, 8)[0]
    places = in_the_plane(rows)
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
