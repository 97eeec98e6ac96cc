from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from episodica.engine.embedder import folded
from episodica.learners.protonet import ProtoNet
from episodica.models.random_layers import DropBlock, Dropout, lending
from episodica.models.resnet12 import CHANNELS, Block, ResNet12
from episodica.rng import generator, seeded


def net(monkeypatch: pytest.MonkeyPatch, width: Any = "wide", **fields: Any) -> ResNet12:
    """A thin one with batch-norms that are not those of a fresh network."""
    monkeypatch.setitem(CHANNELS, width, (4, 6, 8, 10))
    with seeded("resnet12"):
        found = ResNet12(width=width, **fields)
        for norm in found.modules():
            if isinstance(norm, nn.BatchNorm2d):
                nn.init.normal_(norm.weight, 1, 0.5)
                nn.init.normal_(norm.bias)
                norm.running_mean = torch.randn(norm.num_features)
                norm.running_var = torch.rand(norm.num_features) + 0.5
    return found


def images(size: int = 32, count: int = 3) -> torch.Tensor:
    return torch.randn(count, 3, size, size, generator=generator("images"))


@pytest.mark.parametrize(("width", "millions"), [("wide", 12.42), ("narrow", 8.00)])
def test_the_number_of_parameters_follows_from_the_widths(width, millions):
    with torch.device("meta"):
        found = sum(p.numel() for p in ResNet12(width=width).parameters())
    widths = pairwise((3, *CHANNELS[width]))
    assert found == sum(9 * (i * o + 2 * o * o) + i * o + 4 * 2 * o for i, o in widths)
    assert found / 1e6 == pytest.approx(millions, abs=0.01)


@pytest.mark.parametrize("width", ["wide", "narrow"])
@pytest.mark.parametrize("size", [16, 32, 37, 84])
def test_maps_and_embedding_have_the_shapes_that_are_announced(width, size, monkeypatch):
    network = net(monkeypatch, width).eval()
    *_, last = network.maps(images(size))
    assert last.shape[1:] == network.map_shape(size)
    assert network(images(size)).shape[1:] == network.out_shape(size)


def test_a_block_is_three_convolutions_and_a_shortcut_then_activation_and_pool(monkeypatch):
    network = net(monkeypatch).eval()
    expected = images()
    for block in network.blocks:
        assert isinstance(block, Block)
        convs = [layer for layer in block.body if isinstance(layer, nn.Conv2d)]
        norms = [layer for layer in block.body if isinstance(layer, nn.BatchNorm2d)]
        assert [conv.kernel_size for conv in convs] == [(3, 3)] * 3
        x = expected
        for n, (conv, norm) in enumerate(zip(convs, norms, strict=True)):
            x = norm(F.conv2d(x, conv.weight, padding=1))
            x = F.leaky_relu(x, 0.1) if n < 2 else x
        conv, norm = block.shortcut
        assert isinstance(conv, nn.Conv2d)
        expected = F.max_pool2d(F.leaky_relu(x + norm(F.conv2d(expected, conv.weight)), 0.1), 2)
    torch.testing.assert_close(network.maps(images())[-1], expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(network(images()), expected.mean((2, 3)), rtol=1e-4, atol=1e-5)


def test_the_narrow_net_takes_the_maximum_over_the_map(monkeypatch):
    network = net(monkeypatch, "narrow").eval()
    assert torch.equal(network(images()), network.maps(images())[-1].flatten(2).max(-1).values)


def test_numbers_are_dropped_in_the_first_two_blocks_and_squares_in_the_last_two(monkeypatch):
    drops = [block.drop for block in net(monkeypatch, drop_rate=0.2, drop_block=3).blocks]
    assert [type(drop) for drop in drops] == [Dropout, Dropout, DropBlock, DropBlock]
    assert {drop.rate for drop in drops} == {0.2}  # type: ignore[union-attr]


@pytest.mark.parametrize(("size", "sides"), [(84, {2: 5, 3: 5}), (32, {2: 2, 3: 2})])
def test_dropped_squares_have_the_published_sides(size, sides, monkeypatch):
    network = net(monkeypatch).train()
    drawn = {}
    uniform = DropBlock.uniform
    monkeypatch.setattr(
        DropBlock, "uniform", lambda self, shape, like: drawn.update({self: shape[-1]}) or uniform(self, shape, like)
    )
    with lending(network, generator("noise")):
        shapes = [maps.shape[-1] for maps in network.maps(images(size))]
    assert {n: shapes[n] - drawn[network.blocks[n].drop] + 1 for n in (2, 3)} == sides


def test_training_needs_a_generator_and_depends_on_it_alone(monkeypatch):
    network = net(monkeypatch).train()
    with pytest.raises(RuntimeError, match="draws at random"):
        network(images())
    found = []
    for key in (1, 1, 2):
        with lending(network, generator(key)):
            found.append(network(images()))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_without_its_last_activation_the_embedding_is_not_bent(monkeypatch):
    network = net(monkeypatch).eval()
    with torch.no_grad():
        before = network.maps(images())[-1]
        network.drop_last_activation()
        after = network.maps(images())[-1]
    assert (after < 0).any()
    torch.testing.assert_close(F.leaky_relu(after, 0.1), before)


def test_folding_the_batch_norms_changes_no_embedding(monkeypatch):
    learner = ProtoNet(backbone=net(monkeypatch).train())
    quick = folded(learner)
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in quick.modules())
    with torch.no_grad():
        torch.testing.assert_close(quick.embed(images()), learner.eval().embed(images()), rtol=1e-4, atol=1e-5)
