"""The convolution by minimal filtering against torch's in double precision: values and both gradients."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from episodica.engine.fused import kernels
from episodica.engine.fused.winograd import convolve
from episodica.rng import generator

pytestmark = pytest.mark.usefixtures("compiled")
sides, channels = st.integers(1, 11), st.sampled_from([16, 32, 48, 64, 80, 144])


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=generator("winograd", *shape))


def learn(convolution, maps: Tensor, weight: Tensor) -> list[Tensor]:
    """Values, and the gradients of maps and weight, in double precision."""
    maps, weight = maps.clone().requires_grad_(), weight.clone().requires_grad_()
    out = convolution(maps, weight)
    gradients = torch.autograd.grad(out, (maps, weight), draw(*out.shape).to(out))
    return [tensor.detach().double() for tensor in (out, *gradients)]


def by_torch(maps: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(maps, weight, padding=1)


def errors(found: list[Tensor], exact: list[Tensor]) -> list[float]:
    return [
        float((ours - right).abs().max() / right.abs().max().clamp(1)) for ours, right in zip(found, exact, strict=True)
    ]


@given(images=st.integers(1, 4), height=sides, width=sides, inputs=channels, outputs=channels)
def test_any_shape(images, height, width, inputs, outputs):
    maps, weight = draw(images, inputs, height, width), draw(outputs, inputs, 3, 3)
    exact = learn(by_torch, maps.double(), weight.double())
    assert max(errors(learn(convolve, maps, weight), exact)) < 3e-6


@pytest.mark.parametrize(("width", "side"), [(64, 16), (64, 8), (64, 4), (64, 21), (160, 8)])
def test_as_exact_as_torch_on_the_maps_of_a_step(width, side):
    maps, weight = kernels.last(draw(30, width, side, side)).relu(), draw(width, width, 3, 3) / 24
    exact = learn(by_torch, maps.double(), weight.double())
    ours, plain = (errors(learn(how, maps, kernels.last(weight)), exact) for how in (convolve, by_torch))
    assert all(mine < 2 * its + 1e-7 for mine, its in zip(ours, plain, strict=True)), (ours, plain)


def test_only_the_gradients_that_are_asked_for():
    maps, weight = draw(2, 16, 5, 5), draw(32, 16, 3, 3)
    assert not convolve(maps, weight).requires_grad
    for one in (maps, weight):
        both = learn(convolve, maps, weight)
        one.requires_grad_()
        (found,) = torch.autograd.grad(convolve(maps, weight), one, draw(2, 32, 5, 5))
        assert any(torch.equal(found.double(), gradient) for gradient in both[1:])
        one.requires_grad_(False)


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 16), (16, 24)])
def test_other_numbers_of_channels_are_for_torch(inputs, outputs):
    maps, weight = draw(2, inputs, 6, 6), draw(outputs, inputs, 3, 3)
    assert convolve(maps, weight).is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(convolve(maps, weight), by_torch(maps, weight))
