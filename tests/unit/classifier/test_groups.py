"""Grouping by likeness: the plain definition of average linkage, and what must hold whatever the images are."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from episodica.classifier import groups
from episodica.classifier.exact_recogniser import ExactRecogniser
from episodica.classifier.groups import ALONE, group, usual_reach
from episodica.learners.statistics import Statistics, points

# Whole numbers: distances are exact, and no two ways to compute them can disagree.
few_images = arrays(np.float32, st.tuples(st.integers(0, 12), st.just(2)), elements=st.integers(-9, 9))
reaches = st.floats(0, 200)


def plainly(rows: np.ndarray, reach: float) -> list[set[int]]:
    """Join the two groups with the least mean squared distance of their images, until it is beyond reach."""
    found = [{i} for i in range(len(rows))]

    def apart(one: set[int], other: set[int]) -> float:
        return float(np.mean([np.square(rows[i] - rows[j]).sum() for i in one for j in other]))

    while len(found) > 1:
        distance, i, j = min((apart(a, b), i, j) for i, a in enumerate(found) for j, b in enumerate(found) if i < j)
        if distance > reach:
            break
        found[i] |= found.pop(j)
    return found


def as_sets(labels: np.ndarray) -> set[frozenset[int]]:
    alone = {frozenset({int(i)}) for i in np.flatnonzero(labels == ALONE)}
    return alone | {frozenset(np.flatnonzero(labels == k).tolist()) for k in range(1, labels.max(initial=0) + 1)}


def blobs(kinds: int, each: int, seed: int = 0) -> np.ndarray:
    """Groups of images that are 1 or so apart, and groups 100 or more."""
    noise = np.random.default_rng(seed)
    return (np.repeat(100 * np.eye(kinds, 16), each, 0) + noise.normal(scale=0.2, size=(kinds * each, 16))).astype(
        np.float32
    )


@given(st.integers(0, 40), st.integers(0, 2**32 - 1), st.floats(0, 8))
@settings(max_examples=60, deadline=None)
def test_it_is_average_linkage(images: int, seed: int, reach: float) -> None:
    rows = np.random.default_rng(seed).normal(size=(images, 3)).astype(np.float32)
    assert as_sets(group(rows, reach)) == set(map(frozenset, plainly(rows.astype(float), reach)))


@given(few_images, reaches, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_images_does_not_matter(rows: np.ndarray, reach: float, random) -> None:
    order = list(range(len(rows)))
    random.shuffle(order)
    assert group(rows[order], reach).tolist() == group(rows, reach)[order].tolist()


@given(few_images, reaches)
@settings(max_examples=60, deadline=None)
def test_groups_are_numbered_by_size_and_copies_stay_together(rows: np.ndarray, reach: float) -> None:
    labels = group(np.concatenate([rows, rows]), reach)
    assert labels[: len(rows)].tolist() == labels[len(rows) :].tolist()
    sizes = np.bincount(labels, minlength=1)[1:]
    assert sizes.tolist() == sorted(sizes, reverse=True)
    assert all(sizes > 1)


@pytest.mark.parametrize("seeds", [20, 60, 4096])
def test_more_images_than_are_joined_at_once_fall_into_the_same_groups(monkeypatch, seeds: int) -> None:
    monkeypatch.setattr(groups, "SEEDS", seeds)
    monkeypatch.setattr(groups, "CHUNK", 50)
    rows = blobs(12, 25)
    labels = group(rows, reach=10.0)
    assert labels.max() == 12
    assert all(len(set(of_kind.tolist())) == 1 for of_kind in labels.reshape(12, 25))
    shuffled = np.random.default_rng(1).permutation(len(rows))
    assert group(rows[shuffled], reach=10.0).tolist() == labels[shuffled].tolist()


def test_what_is_like_nothing_that_was_looked_at_is_alone(monkeypatch) -> None:
    monkeypatch.setattr(groups, "SEEDS", 4)
    monkeypatch.setattr(groups, "ROUNDS", 2)
    assert group(100 * np.eye(20, dtype=np.float32), reach=1.0).tolist() == [ALONE] * 20


def test_a_mapped_file_and_a_tensor_are_read_alike(tmp_path) -> None:
    rows = blobs(3, 5)
    rows.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.float32, "r", shape=rows.shape)
    assert group(mapped, 10.0).tolist() == group(torch.from_numpy(rows), 10.0).tolist() == group(rows, 10.0).tolist()


def test_without_a_reach_the_images_tell() -> None:
    assert group(blobs(4, 10)).tolist() == group(blobs(4, 10), 10.0).tolist()
    assert usual_reach(blobs(1, 2)) == 0
    assert group(blobs(1, 1)).tolist() == [ALONE]


def test_numbers_that_are_none_do_not_hang_it() -> None:
    rows = blobs(2, 3)
    rows[0, 0], rows[1, 0], rows[2, 0] = np.nan, np.inf, 1e38
    assert len(group(rows, 10.0)) == 6
    assert len(group(rows)) == 6


@pytest.mark.parametrize("known", [0, 1, 2, 8])
def test_a_model_tells_images_of_unknown_classes_apart(known: int) -> None:
    """Four classes that it does not know, whatever it knows."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(12, 64, generator=generator)
    images = (centres[:, None] + 0.5 * torch.randn(12, 10, 64, generator=generator)).numpy()
    statistics = Statistics.of({str(i): points(images[i]) for i in range(known)}, 64)
    recogniser = ExactRecogniser(None, statistics)  # type: ignore[arg-type]
    labels = group(*recogniser.places(images[8:].reshape(-1, 64)))
    assert sorted(set(labels.tolist())) == [1, 2, 3, 4]
    assert all(len(set(of_class.tolist())) == 1 for of_class in labels.reshape(4, 10))
