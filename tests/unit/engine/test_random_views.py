"""Random views by the compiled kernel against those of torch, which are held against slow ones themselves."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodica.config.sections import AugmentConfig
from episodica.data import augment
from episodica.engine.device import computing
from episodica.engine.fused import kernels
from episodica.engine.fused.random_views import random_views
from episodica.rng import generator

pytestmark = pytest.mark.usefixtures("compiled")
strengths = st.sampled_from((0.0, 0.4, 1.0))
configs = st.builds(
    AugmentConfig,
    crop=st.sampled_from(("none", "padded", "resized")),
    padding=st.integers(0, 12),
    flip=st.booleans(),
    brightness=strengths,
    contrast=strengths,
    colour=strengths,
    size=st.none() | st.integers(8, 10),
    std=st.tuples(*[st.sampled_from((0.01, 0.229, 1.0))] * 3),
)
sides = st.integers(1, 12)
sizes = st.tuples(sides, sides) | st.sampled_from([(32, 32), (84, 84)])
edges = st.sampled_from((None, 0.0, 1 - 2**-24))  # of the numbers that are drawn


def images(*shape: int) -> torch.Tensor:
    return torch.randint(256, (*shape, 3), dtype=torch.uint8, generator=generator("images", *shape))


def draws(count: int, seed: int = 0) -> augment.Draws:
    return augment.Draws.of(count, generator("draws", count, seed))


@given(count=st.integers(1, 5), size=sizes, how=configs, seed=st.integers(0, 99), edge=edges)
def test_as_torch_does(count, size, how, seed, edge):
    drawn = draws(count, seed) if edge is None else augment.Draws(*torch.full((8, count), edge))
    found, right = (view(images(count, *size), how, drawn) for view in (random_views, augment.view))
    assert found.shape == right.shape
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert (found - right).abs().max() <= 1e-6 * right.abs().max().clamp(min=1)


def test_draws_of_another_number_of_images_are_refused():
    with pytest.raises(AssertionError):
        random_views(images(5, 9, 9), AugmentConfig(), draws(2))


def test_the_same_bits_with_any_number_of_threads():
    found = []
    for threads in (1, 2, 3):
        with computing(threads):
            found.append(random_views(images(7, 13, 13), AugmentConfig(), draws(7)))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_images_of_any_layout_are_left_as_they_are():
    planes = images(4, 9, 9).permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0)
    before = planes.clone()
    found = random_views(planes, AugmentConfig(), draws(4))
    assert torch.equal(planes, before)
    assert torch.equal(found, random_views(before.contiguous(), AugmentConfig(), draws(4)))


@pytest.mark.parametrize("how", [AugmentConfig(crop="resized"), AugmentConfig(size=16)])
def test_what_changes_its_size_is_left_to_torch(how, monkeypatch):
    monkeypatch.setattr(kernels, "random_views", None)
    found, right = (f(images(2, 12, 12), how, draws(2)) for f in (random_views, augment.view))
    assert torch.equal(found, right)
