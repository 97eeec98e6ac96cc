import pytest
import torch
import torch.nn.functional as F
from torch import nn

from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded


def conv4(width) -> Conv4:
    with seeded("conv4"):
        return Conv4(width=width)


@pytest.mark.parametrize(("width", "size"), [("classic", 16), ("classic", 33), ("classic", 84), ("released", 32)])
def test_the_embedding_has_the_shape_that_is_announced(width, size):
    net = conv4(width)
    images = torch.randn(2, 3, size, size, generator=generator("images"))
    assert net(images).shape == (2, *net.out_shape(size))


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
