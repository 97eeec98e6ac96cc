from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded


def conv4(width: Any, pools: Any = 4) -> Conv4:
    with seeded("conv4"):
        return Conv4(width=width, pools=pools)


@pytest.mark.parametrize(("width", "size"), [("classic", 16), ("classic", 33), ("classic", 84), ("released", 32)])
def test_the_embedding_has_the_shape_that_is_announced(width, size):
    for pools in (4, 2):
        net = conv4(width, pools)
        images = torch.randn(2, 3, size, size, generator=generator("images"))
        assert net(images).shape == (2, *net.out_shape(size))
        assert net.maps(images)[-1].shape == (2, *net.map_shape(size))


@pytest.mark.parametrize(("width", "parameters"), [("classic", 113_088), ("released", 1_002_432)])
def test_the_number_of_parameters_is_that_of_the_papers(width, parameters):
    assert sum(p.numel() for p in conv4(width).parameters()) == parameters


def test_the_released_net_takes_the_maximum_over_the_map():
    net, images = conv4("released").eval(), torch.randn(1, 3, 32, 32, generator=generator("images"))
    maps = net.blocks(images)
    assert maps.shape == (1, 1600, 2, 2)
    expected = torch.stack([maps[..., i, j] for i in range(2) for j in range(2)]).max(0).values
    assert torch.equal(net(images), expected)


def test_a_block_is_a_convolution_then_norm_relu_and_pool():
    net, maps = conv4("classic").eval(), torch.randn(2, 3, 32, 32, generator=generator("images"))
    convs = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    norms = [layer for layer in net.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert len(net.blocks) == len(convs) == len(norms) == 4
    expected = maps
    for conv, norm in zip(convs, norms, strict=True):
        expected = F.max_pool2d(F.relu(norm(F.conv2d(expected, conv.weight, conv.bias, padding=1))), 2)
    torch.testing.assert_close(net(maps), expected.flatten(1))


def test_with_two_pools_only_the_first_two_blocks_halve_the_maps():
    net, images = conv4("classic", 2).eval(), torch.randn(2, 3, 32, 32, generator=generator("images"))
    assert [maps.shape[-1] for maps in net.maps(images)] == [16, 8, 8, 8]
    expected = images
    for n, (conv, norm) in enumerate((block[0], block[1]) for block in net.blocks):  # type: ignore[index]
        expected = F.relu(norm(F.conv2d(expected, conv.weight, conv.bias, padding=1)))
        expected = F.max_pool2d(expected, 2) if n < 2 else expected
    torch.testing.assert_close(net.maps(images)[-1], expected)


@pytest.mark.parametrize(("pools", "smallest"), [(4, 16), (2, 4)])
def test_images_of_which_nothing_would_be_left_are_refused(pools, smallest):
    net = conv4("classic", pools)
    net.check(smallest)
    with pytest.raises(ValueError, match=f"conv4 needs images of {smallest} px and gets {smallest - 1}"):
        net.check(smallest - 1)


@pytest.mark.parametrize("pools", [4, 2])
def test_without_its_last_activation_the_embedding_has_both_signs(pools):
    net, images = conv4("classic", pools).eval(), torch.randn(2, 3, 32, 32, generator=generator("images"))
    before = net(images)
    net.drop_last_activation()
    assert (net(images) < 0).any()
    torch.testing.assert_close(net(images).relu(), before)
