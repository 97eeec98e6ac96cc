"""Dropout and DropBlock against loops over numbers, and where they may draw from."""

import pytest
import torch
from torch import Tensor, nn

from episodica.models.random_layers import DropBlock, Dropout, lending
from episodica.rng import generator


def slow_dropblock(x: Tensor, rate: float, side: int, g: torch.Generator) -> Tensor:
    """A number is zero where any drawn corner's square covers it; what is left makes up for it."""
    images, channels, size, _ = x.shape
    places = size - side + 1
    drawn = torch.rand(images, channels, places, places, generator=g)
    keep = torch.ones_like(x)
    for m in range(images):
        for c in range(channels):
            for i in range(places):
                for j in range(places):
                    if drawn[m, c, i, j] < rate / side**2 * size**2 / places**2:
                        for a in range(side):
                            for b in range(side):
                                keep[m, c, i + a, j + b] = 0
    return x * keep * keep.numel() / keep.sum()


@pytest.mark.parametrize(
    ("size", "asked", "halvings", "side"),
    [(10, 5, 1, 5), (5, 5, 0, 5), (4, 5, 1, 2), (2, 5, 0, 2), (9, 3, 0, 3), (7, 1, 0, 1), (1, 5, 0, 1)],
)
def test_dropblock_zeroes_squares_as_large_as_the_last_maps_allow(size, asked, halvings, side):
    x = torch.randn(3, 4, size, size, generator=generator("x"))
    layer = DropBlock(0.3, asked, halvings).train()
    with lending(layer, generator("noise")):
        found = layer(x)
    torch.testing.assert_close(found, slow_dropblock(x, 0.3, side, generator("noise")))


@pytest.mark.parametrize(("size", "side"), [(5, 5), (10, 5), (4, 2), (8, 1)])
def test_dropblock_drops_about_its_rate_and_keeps_the_mean(size, side):
    layer = DropBlock(0.1, side, 0).train()
    with lending(layer, generator("noise", size, side)):
        found = layer(torch.ones(200, 50, size, size))
    share = (found == 0).float().mean().item()
    assert share == pytest.approx(0.1, abs=0.01)  # squares may overlap, so a little less
    assert share < 0.105
    assert found.mean().item() == pytest.approx(1, abs=1e-4)


def test_dropout_drops_its_rate_and_keeps_the_mean():
    layer = Dropout(0.3).train()
    with lending(layer, generator("noise")):
        found = layer(torch.ones(1000, 100))
    assert (found == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert found.unique().tolist() == pytest.approx([0, 1 / 0.7])


def test_everything_dropped_is_zero_and_not_infinite():
    layer = DropBlock(0.99, 1, 0).train()
    with lending(layer, generator(0)):
        found = torch.stack([layer(torch.ones(1, 1, 1, 1)) for _ in range(50)])
    assert (found == 0).any()
    assert found.isfinite().all()


@pytest.mark.parametrize("make", [lambda rate: Dropout(rate), lambda rate: DropBlock(rate, 2, 0)])
class TestDraws:
    def test_without_a_generator_training_is_refused(self, make):
        layer, x = make(0.1).train(), torch.ones(1, 2, 4, 4)
        with pytest.raises(RuntimeError, match="draws at random in training"):
            layer(x)
        with lending(layer, generator(0)):
            layer(x)
        with pytest.raises(RuntimeError, match="draws at random in training"):
            layer(x)

    def test_the_generator_is_taken_back_after_an_error(self, make):
        layer = make(0.1)
        with pytest.raises(KeyError), lending(layer, generator(0)):
            raise KeyError
        assert layer.generator is None

    def test_evaluation_and_a_rate_of_zero_change_nothing(self, make):
        x = torch.randn(1, 2, 4, 4, generator=generator("x"))
        assert torch.equal(make(0.5).eval()(x), x)
        assert torch.equal(make(0.0).train()(x), x)

    def test_the_same_generator_gives_the_same_network(self, make):
        network, x = nn.Sequential(make(0.4), nn.Sequential(make(0.4))).train(), torch.ones(3, 4, 4, 4)
        found = []
        for key in (1, 1, 2):
            with lending(network, generator(key)):
                found.append(network(x))
        assert torch.equal(found[0], found[1])
        assert not torch.equal(found[0], found[2])
