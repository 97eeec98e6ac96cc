"""The fused first block against the plain modules in double precision: values, gradients, running statistics."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from episodica.engine.embedder import folded
from episodica.engine.fused import kernels
from episodica.engine.fused.block import FusedBlock, fits
from episodica.engine.fused.build import CannotBuild, library
from episodica.learners.protonet import ProtoNet
from episodica.models import conv4
from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded

shapes = st.tuples(st.integers(1, 5), st.integers(2, 13), st.integers(2, 13), st.sampled_from([16, 32, 48, 64, 80]))


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    try:
        library()
    except CannotBuild as error:
        pytest.skip(str(error))


def plain_block(channels: int = 64, *seed: int | str) -> nn.Sequential:
    """A block whose batch-norm is far from the identity: factors of both signs, and zeros under shifts of both."""
    with seeded("block", *seed):
        block = conv4.block(3, channels)
        norm = block[1]
        assert isinstance(norm, nn.BatchNorm2d)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        norm.weight.data[:2], norm.bias.data[:2] = 0, torch.tensor([0.7, -0.7])
        norm.running_mean, norm.running_var = torch.randn(channels), torch.rand(channels) + 0.5
    return block


def fused(block: nn.Sequential) -> FusedBlock:
    return FusedBlock(*deepcopy(block)).train(block.training)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=generator("pixels", *shape)) * 0.8 + 0.4


@contextmanager
def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    yield
    torch.set_num_threads(before)


def learn(block: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """All that a training step on the block computes, in double precision."""
    out = block(images)
    weights = torch.randn(out.shape, generator=generator("gradient", *out.shape)).to(out.dtype)
    (out * weights).sum().backward()
    gradients = {f"gradient of {name}": p.grad for name, p in block.named_parameters() if p.grad is not None}
    return {name: t.detach().double() for name, t in {"out": out, **gradients, **dict(block.named_buffers())}.items()}


def errors(found: dict[str, Tensor], exact: dict[str, Tensor]) -> dict[str, float]:
    """The largest error of each tensor, in units of its largest value (or of 1 where all are smaller)."""
    assert found.keys() == exact.keys()
    return {name: float((found[name] - exact[name]).abs().max() / exact[name].abs().max().clamp(1)) for name in exact}


@given(shapes)
def test_a_training_step_is_that_of_the_plain_block(shape):
    m, h, w, channels = shape
    block, images = plain_block(channels, *shape), draw(m, 3, h, w)
    exact = learn(deepcopy(block).double(), images.double())
    assert max(errors(learn(fused(block), images), exact).values()) < 2e-5


@pytest.mark.parametrize("size", [32, 33])
def test_a_large_step_is_as_exact_as_the_plain_one(size):
    block, images = plain_block(), draw(40, 3, size, size)
    exact = learn(deepcopy(block).double(), images.double())
    ours, plain = errors(learn(fused(block), images), exact), errors(learn(block, images), exact)
    for name in exact:
        assert ours[name] < 2 * plain[name] + 1e-6, name


def test_several_steps_track_the_statistics_as_batch_norm_does():
    block = plain_block()
    ours = fused(block)
    for i in range(4):
        for one in (block, ours):
            one(draw(3 + i, 3, 9, 8))
    for name, buffer in block.named_buffers():
        torch.testing.assert_close(dict(ours.named_buffers())[name], buffer, rtol=1e-5, atol=1e-6)
    assert ours[1].num_batches_tracked == 4


def test_the_bias_gets_exactly_no_gradient():
    assert learn(fused(plain_block()), draw(4, 3, 10, 10))["gradient of 0.bias"].abs().max() == 0


@given(shapes)
def test_evaluation_is_that_of_the_plain_block(shape):
    m, h, w, channels = shape
    block, images = plain_block(channels, *shape).eval(), draw(m, 3, h, w)
    exact = learn(deepcopy(block).double(), images.double())
    assert max(errors(learn(fused(block), images), exact).values()) < 2e-5


def test_without_gradient_the_values_are_the_same():
    ours, images = fused(plain_block()).eval(), draw(3, 3, 16, 16)
    with torch.no_grad():
        quick = ours(images)
    assert torch.equal(quick, ours(images))


@pytest.mark.parametrize("contrast", [1.0, 1e-3])
def test_patch_moments_are_exact_where_neighbours_hardly_differ(contrast):
    images = 2 + contrast * draw(6, 3, 11, 8)
    patches = F.unfold(images.double(), 3, padding=1).unflatten(1, (3, 9)).transpose(1, 2).flatten(1, 2)
    patches = patches.transpose(0, 1).flatten(1)  # [27, patches], colours last
    mean, covariance = kernels.patch_moments(images)
    torch.testing.assert_close(mean, patches.mean(1), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(covariance, patches.cov(correction=0), rtol=1e-12, atol=1e-12)


def test_the_number_of_threads_changes_no_bit():
    images = draw(7, 3, 12, 12)
    results = []
    for number in (1, 2, 3):
        with threads(number):
            results.append(learn(fused(plain_block()), images))
    for result in results[1:]:
        assert all(torch.equal(result[name], results[0][name]) for name in result)


def test_an_image_alone_and_in_any_memory_format():
    ours, images = fused(plain_block()).eval(), draw(1, 3, 16, 16)
    assert torch.equal(ours(images), ours(images.contiguous(memory_format=torch.channels_last)))
    assert ours(images).is_contiguous(memory_format=torch.channels_last)


def test_what_is_not_a_number_stays_visible():
    block = plain_block()
    next(block.parameters()).data[5] = float("nan")
    assert fused(block)(draw(2, 3, 8, 8))[:, 5].isnan().all()


def test_images_have_no_gradient():
    with pytest.raises(AssertionError, match="images are given"):
        fused(plain_block())(draw(2, 3, 8, 8).requires_grad_())


def test_state_and_copies_are_those_of_the_plain_block():
    block = plain_block()
    ours, images = fused(block), draw(3, 3, 16, 16)
    assert list(ours.state_dict()) == list(block.state_dict())
    copy = deepcopy(ours)
    copy.load_state_dict(plain_block(64, "another").state_dict())
    assert not torch.allclose(copy(images), ours(images))
    assert copy[0].weight is not ours[0].weight


def test_batch_norms_can_be_folded_away():
    with seeded("folded"):
        learner = ProtoNet(backbone=Conv4())
    learner.backbone.blocks[0] = fused(plain_block())
    images = draw(5, 3, 32, 32)
    with torch.no_grad():
        quick, exact = folded(learner), learner.eval().embed(images)
        assert isinstance(quick.backbone.blocks[0], FusedBlock)
        torch.testing.assert_close(quick.embed(images), exact, rtol=1e-4, atol=1e-5)


def changed(place: int, module: nn.Module) -> nn.Sequential:
    block = plain_block()
    block[place] = module
    return block


@pytest.mark.parametrize(
    "block",
    [
        nn.Conv2d(3, 64, 3, padding=1),
        plain_block()[:3],
        changed(0, nn.Conv2d(3, 64, 3)),
        changed(0, nn.Conv2d(3, 64, 3, padding=1, bias=False)),
        changed(0, nn.Conv2d(3, 64, 3, padding=1, stride=2)),
        changed(0, nn.Conv2d(4, 64, 3, padding=1)),
        changed(0, nn.Conv2d(3, 24, 3, padding=1)),
        changed(0, nn.Conv2d(3, 64, 3, padding=1, padding_mode="reflect")),
        changed(1, nn.BatchNorm2d(64, affine=False)),
        changed(1, nn.BatchNorm2d(64, momentum=None)),
        changed(1, nn.Identity()),
        changed(2, nn.MaxPool2d(3)),
        changed(2, nn.MaxPool2d(2, ceil_mode=True)),
        changed(2, nn.AvgPool2d(2)),
        changed(3, nn.LeakyReLU()),
        deepcopy(plain_block()).double(),
    ],
)
def test_blocks_of_another_form_are_left_alone(block):
    assert fits(plain_block())
    assert not fits(block)
