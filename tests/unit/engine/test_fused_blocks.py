"""The fused blocks against the plain modules in double precision: values, gradients, running statistics."""

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
from episodica.engine.fused.accelerate import accelerate
from episodica.engine.fused.conv import Conv
from episodica.engine.fused.first_block import FirstBlock
from episodica.engine.fused.form import fits
from episodica.engine.fused.later_block import LaterBlock
from episodica.engine.fused.residual_block import ResidualBlock
from episodica.learners.learner import Learner
from episodica.learners.protonet import ProtoNet
from episodica.learners.relationnet import RelationNet
from episodica.models import conv4
from episodica.models.conv4 import Conv4
from episodica.models.random_layers import lending
from episodica.models.resnet12 import Block, ResNet12
from episodica.rng import generator, seeded
from episodica.types import Embedded

pytestmark = pytest.mark.usefixtures("compiled")
shapes = st.tuples(st.integers(1, 5), st.integers(2, 13), st.integers(2, 13), st.sampled_from([16, 32, 48, 64, 80]))
INPUTS = {FirstBlock: 3, LaterBlock: 16}
either = pytest.mark.parametrize("kind", INPUTS)
Kind = type[FirstBlock] | type[LaterBlock]


def plain_block(kind: Kind = FirstBlock, channels: int = 64, *seed: int | str) -> nn.Sequential:
    """A block whose batch-norm is far from the identity: factors of both signs, and zeros under shifts of both."""
    with seeded("block", *seed):
        block = conv4.block(INPUTS[kind], channels)
        norm = block[1]
        assert isinstance(norm, nn.BatchNorm2d)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        norm.weight.data[:2], norm.bias.data[:2] = 0, torch.tensor([0.7, -0.7])
        norm.running_mean, norm.running_var = torch.randn(channels), torch.rand(channels) + 0.5
    return block


def fused(kind: Kind, block: nn.Sequential) -> nn.Sequential:
    return kind(*deepcopy(block)).train(block.training)


def draw(kind: Kind, m: int, h: int, w: int) -> Tensor:
    return torch.randn((m, INPUTS[kind], h, w), generator=generator("pixels", m, h, w)) * 0.8 + 0.4


@contextmanager
def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    yield
    torch.set_num_threads(before)


def decided(block: nn.Sequential, pixels: Tensor) -> Tensor:
    """Where neither the maximum nor its sign depends on rounding, which may send a gradient another way."""
    with torch.no_grad():
        maps = deepcopy(block)[:2].double()(pixels.double())
    maps = maps[..., : maps.shape[2] // 2 * 2, : maps.shape[3] // 2 * 2]
    four = maps.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).transpose(3, 4).flatten(4)
    best, second = four.topk(2).values.unbind(-1)
    equal = (four.amax(-1) == four.amin(-1)) & (four.amax(-1).abs() > 0.1)  # by a factor of zero: the first is taken
    return ((best - second > 1e-4) | equal) & (best.abs() > 1e-4)


def learn(block: nn.Sequential, pixels: Tensor) -> dict[str, Tensor]:
    """All that a training step on the block computes, in double precision."""
    clear = decided(nn.Sequential(*block), pixels)
    pixels = pixels.clone().requires_grad_(pixels.shape[1] > 3)  # images are not learnt, maps are
    out = block(pixels)
    weights = (torch.randn(out.shape, generator=generator("gradient", *out.shape)) * clear).to(out.dtype)
    (out * weights).sum().backward()
    found = {f"gradient of {name}": p.grad for name, p in block.named_parameters()}
    found |= {"out": out, "gradient of the input": pixels.grad, **dict(block.named_buffers())}
    return {name: tensor.detach().double() for name, tensor in found.items() if tensor is not None}


def errors(found: dict[str, Tensor], exact: dict[str, Tensor]) -> dict[str, float]:
    """The largest error of each tensor, in units of its largest value (or of 1 where all are smaller)."""
    assert found.keys() == exact.keys()
    return {name: float((found[name] - exact[name]).abs().max() / exact[name].abs().max().clamp(1)) for name in exact}


@either
@given(shape=shapes)
def test_a_training_step_is_that_of_the_plain_block(kind, shape):
    m, h, w, channels = shape
    block, pixels = plain_block(kind, channels, *shape), draw(kind, m, h, w)
    exact = learn(deepcopy(block).double(), pixels.double())
    assert max(errors(learn(fused(kind, block), pixels), exact).values()) < 3e-5


@either
@pytest.mark.parametrize("size", [32, 33])
def test_a_large_step_is_as_exact_as_the_plain_one(kind, size):
    block, pixels = plain_block(kind), draw(kind, 40, size, size)
    exact = learn(deepcopy(block).double(), pixels.double())
    ours, plain = errors(learn(fused(kind, block), pixels), exact), errors(learn(block, pixels), exact)
    for name in exact:
        assert ours[name] < 2 * plain[name] + 1e-6, name


@either
def test_several_steps_track_the_statistics_as_batch_norm_does(kind):
    block = plain_block(kind)
    ours = fused(kind, block)
    for i in range(4):
        for one in (block, ours):
            one(draw(kind, 3 + i, 9, 8))
    for name, buffer in block.named_buffers():
        torch.testing.assert_close(dict(ours.named_buffers())[name], buffer, rtol=1e-5, atol=1e-6)
    assert ours[1].num_batches_tracked == 4


@either
def test_the_bias_gets_exactly_no_gradient(kind):
    found = learn(fused(kind, plain_block(kind)), draw(kind, 4, 10, 10))
    assert found["gradient of 0.bias"].abs().max() == 0


@either
@given(shape=shapes)
def test_evaluation_is_that_of_the_plain_block(kind, shape):
    m, h, w, channels = shape
    block, pixels = plain_block(kind, channels, *shape).eval(), draw(kind, m, h, w)
    exact, ours = learn(deepcopy(block).double(), pixels.double()), fused(kind, block)
    with torch.no_grad():
        assert errors({"out": ours(pixels)}, {"out": exact["out"]})["out"] < 3e-5
    assert max(errors(learn(ours, pixels), exact).values()) < 3e-5


@pytest.mark.parametrize("contrast", [1.0, 1e-3])
def test_patch_moments_are_exact_where_neighbours_hardly_differ(contrast):
    images = 2 + contrast * draw(FirstBlock, 6, 11, 8)
    patches = F.unfold(images.double(), 3, padding=1).unflatten(1, (3, 9)).transpose(1, 2).flatten(1, 2)
    patches = patches.transpose(0, 1).flatten(1)  # [27, patches], colours last
    mean, covariance = kernels.patch_moments(kernels.last(images))
    torch.testing.assert_close(mean, patches.mean(1), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(covariance, patches.cov(correction=0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("contrast", [1.0, 1e-3])
def test_channel_moments_are_exact_where_pixels_hardly_differ(contrast):
    maps = 2 + contrast * draw(LaterBlock, 6, 11, 8)
    mean, variance = kernels.channel_moments(kernels.last(maps))
    torch.testing.assert_close(mean, maps.double().mean((0, 2, 3)), rtol=1e-6, atol=0)
    torch.testing.assert_close(variance, maps.double().var((0, 2, 3), correction=0), rtol=1e-5, atol=0)


@either
def test_the_number_of_threads_changes_no_bit(kind):
    pixels, results = draw(kind, 7, 12, 12), []
    for number in (1, 2, 3):
        with threads(number):
            results.append(learn(fused(kind, plain_block(kind)), pixels))
    for result in results[1:]:
        assert all(torch.equal(result[name], results[0][name]) for name in result)


@either
def test_any_memory_format(kind):
    ours, pixels = fused(kind, plain_block(kind)), draw(kind, 1, 16, 16)
    torch.testing.assert_close(ours(pixels), ours(kernels.last(pixels)))
    assert ours(pixels).is_contiguous(memory_format=torch.channels_last)


@either
def test_what_is_not_a_number_stays_visible(kind):
    block = plain_block(kind)
    next(block.parameters()).data[5] = float("nan")
    assert fused(kind, block)(draw(kind, 2, 8, 8))[:, 5].isnan().all()


@either
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_single_value_that_is_not_finite_reaches_what_it_reaches_in_torch(kind, value):
    """Infinite numbers of one tile may meet and be no numbers, where torch keeps them or ReLU cuts them off."""
    block, pixels = plain_block(kind).eval(), draw(kind, 2, 8, 8)
    pixels[0, 0, 2, 2] = value  # of its windows, all but one begin with another number
    with torch.no_grad():
        ours, plain = fused(kind, block)(pixels), block(pixels)
    if kind is FirstBlock or value != value:
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert not (ours.isfinite() & ~plain.isfinite()).any()
    assert ours[..., 2:].isfinite().all()
    torch.testing.assert_close(ours[ours.isfinite()], plain[ours.isfinite()], rtol=1e-4, atol=1e-5)


@either
@pytest.mark.parametrize("frozen", [True, False])
def test_statistics_are_fixed_where_those_of_the_batch_norm_are(kind, frozen):
    block, pixels = plain_block(kind).train(frozen), draw(kind, 3, 8, 8)
    block[1].train(not frozen)
    ours = deepcopy(block)
    ours.__class__ = kind
    torch.testing.assert_close(ours(pixels), block(pixels), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours[1].running_mean, block[1].running_mean)


@either
def test_no_images_are_no_maps_and_nothing_to_learn_from(kind):
    ours, none = fused(kind, plain_block(kind)), draw(kind, 0, 8, 8)
    with pytest.raises(AssertionError, match="no variance"):
        ours(none)
    with torch.no_grad():
        assert ours.eval()(none).shape == (0, 64, 4, 4)


@either
def test_maps_of_which_nothing_would_be_left_are_refused_as_by_torch(kind):
    with pytest.raises(AssertionError, match="nothing is left of maps of 1 x 8"):
        fused(kind, plain_block(kind))(draw(kind, 2, 1, 8))


def test_images_have_no_gradient():
    with pytest.raises(AssertionError, match="images are given"):
        fused(FirstBlock, plain_block())(draw(FirstBlock, 2, 8, 8).requires_grad_())


@either
def test_state_and_copies_are_those_of_the_plain_block(kind):
    block = plain_block(kind)
    ours, pixels = fused(kind, block), draw(kind, 3, 16, 16)
    assert list(ours.state_dict()) == list(block.state_dict())
    copy = deepcopy(ours)
    copy.load_state_dict(plain_block(kind, 64, "another").state_dict())
    assert not torch.allclose(copy(pixels), ours(pixels))


def test_batch_norms_can_be_folded_away():
    with seeded("folded"):
        learner = ProtoNet(backbone=Conv4())
    images = draw(FirstBlock, 5, 32, 32)
    learner.embed(images)
    quick = deepcopy(learner)
    assert accelerate(quick, "fused", lambda text: None) == "fused"
    kinds = [type(block) for block in folded(quick).backbone.blocks]
    assert kinds == [FirstBlock, LaterBlock, LaterBlock, LaterBlock]
    with torch.no_grad():
        torch.testing.assert_close(folded(quick).embed(images), learner.eval().embed(images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("width", "size"), [("classic", 84), ("released", 84), ("released", 33)])
def test_the_networks_of_the_paper_are_those_of_plain_torch(width, size):
    with seeded("networks"):
        learner = ProtoNet(backbone=Conv4(width=width))
    quick, images = deepcopy(learner), draw(FirstBlock, 6, size, size)
    assert accelerate(quick, "fused", lambda text: None) == "fused"
    torch.testing.assert_close(quick.embed(images), learner.embed(images), rtol=1e-4, atol=1e-4)
    for (name, ours), plain in zip(quick.named_buffers(), learner.buffers(), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


def step(learner: Learner, images: Tensor) -> dict[str, Tensor]:
    """Embeddings and all gradients of a step, without what is random about it."""
    with seeded("step"), lending(learner, generator("noise")):
        out = learner.answers(Embedded.of(learner.embed(images).unflatten(0, (1, 2, 3)), 1))
    (out * torch.randn(out.shape, generator=generator("gradient", *out.shape))).sum().backward()
    return {"out": out.detach(), **{name: p.grad for name, p in learner.named_parameters() if p.grad is not None}}


@pytest.mark.parametrize(
    "build",
    [lambda: ProtoNet(backbone=ResNet12()), lambda: RelationNet(backbone=Conv4(pools=2))],
    ids=["resnet", "relation"],
)
def test_other_networks_are_those_of_plain_torch(build):
    with seeded("others"):
        learner = build()
        learner.build_for(16)
    quick, images = deepcopy(learner), draw(FirstBlock, 6, 16, 16)
    assert accelerate(quick, "fused", lambda text: None) == "fused"
    assert list(quick.state_dict()) == list(learner.state_dict())
    plain, found = (step(one, images) for one in (learner, quick))
    assert plain.keys() == found.keys()
    for name in plain:
        torch.testing.assert_close(
            found[name], plain[name], rtol=1e-3, atol=1e-3 * float(plain[name].abs().max()) + 1e-6
        )
    with torch.no_grad():
        embedded = folded(quick).embed(images)
    torch.testing.assert_close(embedded, learner.eval().embed(images), rtol=1e-4, atol=1e-4)


def test_convolutions_of_a_class_of_their_own_are_left_alone():
    class Own(nn.Conv2d):
        pass

    with seeded("own"):
        learner = ProtoNet(backbone=ResNet12())
        body = learner.backbone.get_submodule("blocks.1.body")
        assert isinstance(body, nn.Sequential)
        body[0] = Own(64, 160, 3, padding=1, bias=False)
    accelerate(learner, "fused", lambda text: None)
    assert [type(block) for block in learner.backbone.blocks] == [ResidualBlock, Block, ResidualBlock, ResidualBlock]
    kinds = [type(layer) for layer in learner.backbone.get_submodule("blocks.1.body").children()]
    assert [kind for kind in kinds if issubclass(kind, nn.Conv2d)] == [Own, Conv, Conv]


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
