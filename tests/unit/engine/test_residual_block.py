"""Layers and residual blocks by the kernels against the plain modules in double precision."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TypeVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from episodica.engine.embedder import folded
from episodica.engine.fused import kernels
from episodica.engine.fused.form import chain_fits, residual_fits
from episodica.engine.fused.layer import Chain
from episodica.engine.fused.residual_block import ResidualBlock
from episodica.models.random_layers import Dropout, lending
from episodica.models.resnet12 import Block
from episodica.rng import generator, seeded

pytestmark = pytest.mark.usefixtures("compiled")
Plain = nn.Sequential | Block
Fused = Chain | ResidualBlock
Some = TypeVar("Some", nn.Sequential, Block)
NEAR = 1e-4  # of a kink: rounding may send a gradient another way
shapes = st.tuples(st.integers(2, 5), st.integers(3, 11), st.integers(3, 11), st.sampled_from([16, 32, 48, 80]))


def layer(channels: int, activation: nn.Module) -> nn.Sequential:
    with seeded("layer", channels):
        return unusual(nn.Sequential(nn.Conv2d(16, channels, 3, padding=1), nn.BatchNorm2d(channels), activation))


def leaky(channels: int = 48) -> nn.Sequential:
    return layer(channels, nn.LeakyReLU(0.1))


def relu(channels: int = 48) -> nn.Sequential:
    return layer(channels, nn.ReLU(inplace=True))


def bare(channels: int = 48) -> nn.Sequential:
    return layer(channels, nn.Identity())


def residual(channels: int = 48, inputs: int = 16) -> Block:
    """Without the kinks of the inner activations, which have tests of their own."""
    with seeded("residual", channels):
        block = unusual(Block(inputs, channels, Dropout(0)))
    for place in ("2", "5"):
        block.body.set_submodule(place, nn.LeakyReLU(1.0))
    return block


def of_images(channels: int = 48) -> Block:
    return residual(channels, 3)


def unusual(module: Some) -> Some:
    """Batch-norms that are far from the identity: factors of both signs, and zeros under shifts of both."""
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
            norm.running_mean, norm.running_var = torch.randn(len(norm.weight)), torch.rand(len(norm.weight)) + 0.5
            norm.weight.data[:2], norm.bias.data[:2] = 0, torch.tensor([0.7, -0.7])
    return module


every = pytest.mark.parametrize("build", [leaky, relu, bare, residual, of_images])


def fused(plain: Plain) -> Fused:
    copy = deepcopy(plain)
    if isinstance(copy, Block):
        assert residual_fits(copy)
        return ResidualBlock(copy)
    assert chain_fits(copy)
    return Chain(*copy).train(copy.training)


def draw(plain: Plain, m: int, h: int, w: int) -> Tensor:
    inputs = next(plain.parameters()).shape[1]
    return torch.randn((m, inputs, h, w), generator=generator("maps", m, h, w)) * 0.8 + 0.4


def decided(plain: Plain, maps: Tensor) -> Tensor:
    """Where no maximum and no sign depends on rounding."""
    with torch.no_grad():
        exact, maps = deepcopy(plain).double(), maps.double()
        if not isinstance(exact, Block):
            return exact[:2](maps).abs() > NEAR
        found = exact.body(maps) + exact.shortcut(maps)
    found = found[..., : found.shape[2] // 2 * 2, : found.shape[3] // 2 * 2]
    four = found.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).transpose(3, 4).flatten(4)
    best, second = four.topk(2).values.unbind(-1)
    equal = (four.amax(-1) == four.amin(-1)) & (four.amax(-1).abs() > 0.1)  # by factors of zero: the first is taken
    return ((best - second > NEAR) | equal) & (best.abs() > NEAR)


def learn(module: Plain | Fused, maps: Tensor, clear: Tensor) -> dict[str, Tensor]:
    """All that a training step computes, in double precision."""
    maps = maps.clone().requires_grad_()
    out = module(maps)
    weights = (torch.randn(out.shape, generator=generator("gradient", *out.shape)) * clear).to(out.dtype)
    (out * weights).sum().backward()
    found = {f"gradient of {name}": p.grad for name, p in module.named_parameters()}
    found |= {"out": out, "gradient of the input": maps.grad, **dict(module.named_buffers())}
    return {name: tensor.detach().double() for name, tensor in found.items() if tensor is not None}


def errors(found: dict[str, Tensor], exact: dict[str, Tensor]) -> dict[str, float]:
    """The largest error of each tensor, in units of its largest value (or of 1 where all are smaller)."""
    assert found.keys() == exact.keys()
    return {name: float((found[name] - exact[name]).abs().max() / exact[name].abs().max().clamp(1)) for name in exact}


@every
@given(shape=shapes)
def test_a_training_step_is_that_of_the_plain_modules(build, shape):
    m, h, w, channels = shape
    plain = build(channels)
    maps = draw(plain, m, h, w)
    clear = decided(plain, maps)
    exact = learn(deepcopy(plain).double(), maps.double(), clear)
    assert max(errors(learn(fused(plain), maps, clear), exact).values()) < 1e-4


@every
@pytest.mark.parametrize("size", [16, 17])
def test_a_large_step_is_as_exact_as_the_plain_one(build, size):
    plain = build(64)
    maps = kernels.last(draw(plain, 40, size, size))
    clear = decided(plain, maps)
    exact = learn(deepcopy(plain).double(), maps.double(), clear)
    ours, its = errors(learn(fused(plain), maps, clear), exact), errors(learn(plain, maps, clear), exact)
    for name in exact:
        assert ours[name] < 2 * its[name] + 1e-6, name


@every
@given(shape=shapes)
def test_evaluation_is_that_of_the_plain_modules(build, shape):
    m, h, w, channels = shape
    plain = build(channels).eval()
    maps = draw(plain, m, h, w)
    clear = decided(plain, maps)
    exact, ours = learn(deepcopy(plain).double(), maps.double(), clear), fused(plain)
    with torch.no_grad():
        for one in (ours, folded(ours)):
            assert errors({"out": one(maps)}, {"out": exact["out"]})["out"] < 3e-5
    assert max(errors(learn(ours, maps, clear), exact).values()) < 3e-5


@every
def test_several_steps_track_the_statistics_as_batch_norm_does(build):
    plain = build()
    ours = fused(plain)
    for i in range(4):
        for one in (plain, ours):
            one(draw(plain, 3 + i, 9, 8))
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(dict(ours.named_buffers())[name], buffer, rtol=1e-5, atol=1e-5)


@contextmanager
def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("build", [leaky, residual])
def test_the_number_of_threads_changes_no_bit(build):
    plain, results = build(80), []
    maps = draw(plain, 7, 12, 12)
    for number in (1, 2, 3):
        with threads(number):
            results.append(learn(fused(plain), maps, torch.tensor(True)))
    own = [name for name in results[0] if "shortcut.0" not in name and name != "gradient of the input"]  # not torch's
    for result in results[1:]:
        assert all(torch.equal(result[name], results[0][name]) for name in own)


@every
def test_what_is_not_a_number_stays_visible(build):
    plain = build()
    conv = next(module for module in reversed(list(plain.modules())) if isinstance(module, nn.Conv2d))
    conv.weight.data[5] = float("nan")
    assert fused(plain)(draw(plain, 2, 8, 8))[:, 5].isnan().all()


@every
def test_state_is_that_of_the_plain_modules(build):
    plain = build()
    assert list(fused(plain).state_dict()) == list(plain.state_dict())
    assert fused(plain.eval()).training is False


def test_the_last_activation_may_be_gone():
    plain = residual()
    plain.end[-1] = nn.Identity()
    ours, maps = fused(plain), draw(plain, 4, 8, 8)
    torch.testing.assert_close(ours(maps), plain(maps), rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(folded(ours)(maps), plain.eval()(maps), rtol=1e-4, atol=1e-4)


def test_what_drops_numbers_draws_as_in_the_plain_block():
    plain = residual()
    plain.drop = Dropout(0.5)
    ours, found = fused(plain), []
    for one in (ours, plain):
        with lending(one, generator("noise")):
            found.append(one(draw(plain, 4, 8, 8)))
    assert torch.equal(found[0] == 0, found[1] == 0)


def test_one_batch_norm_that_is_fixed_beside_one_that_learns():
    plain = residual()
    plain.shortcut.eval()
    ours, maps = fused(plain), draw(plain, 4, 8, 8)
    torch.testing.assert_close(ours(maps), plain(maps), rtol=1e-4, atol=1e-4)


def changed(part: str, place: int, module: nn.Module) -> Block:
    block = residual()
    block.get_submodule(part)[place] = module  # type: ignore[index]
    return block


@pytest.mark.parametrize(
    "block",
    [
        nn.Conv2d(16, 16, 3),
        changed("body", 0, nn.Conv2d(16, 48, 3, padding=1, stride=2)),
        changed("body", 1, nn.BatchNorm2d(48, affine=False)),
        changed("body", 7, nn.Identity()),
        changed("shortcut", 0, nn.Conv2d(16, 48, 3, padding=1)),
        changed("shortcut", 1, nn.BatchNorm2d(48, momentum=None)),
        changed("end", 0, nn.MaxPool2d(3)),
        changed("end", 1, nn.GELU()),
        deepcopy(residual()).double(),
    ],
)
def test_blocks_of_another_form_are_left_alone(block):
    assert not residual_fits(block)


@pytest.mark.parametrize(
    "chain",
    [
        nn.Sequential(),
        nn.Sequential(nn.Conv2d(16, 16, 3, padding=1)),
        nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()),
        nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)),
        nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.GELU()),
        nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16, track_running_stats=False)),
    ],
)
def test_chains_of_another_form_are_left_alone(chain):
    assert not chain_fits(chain)
