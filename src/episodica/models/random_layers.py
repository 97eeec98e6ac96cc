"""Layers that draw at random in training, always from a generator that was lent to them for one forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from episodica.lazy_torch import F, Generator, Module, Tensor, nn, torch


class RandomLayer(Module):
    """A layer without a generator refuses to train, so that nothing ever depends on torch's global random state."""

    def __init__(self) -> None:
        super().__init__()
        self.generator: Generator | None = None

    def uniform(self, shape: torch.Size, like: Tensor) -> Tensor:
        """Numbers in [0, 1), drawn on the CPU so that every device sees the same."""
        if self.generator is None:
            raise RuntimeError(
                f"{type(self).__name__} draws at random in training: call the network inside "
                "`with lending(network, generator)`, or put it into evaluation mode"
            )
        return torch.rand(shape, generator=self.generator).to(like.device)


@contextmanager
def lending(network: nn.Module, g: Generator) -> Iterator[None]:
    """All random layers of the network draw from this generator inside."""
    layers = [layer for layer in network.modules() if isinstance(layer, RandomLayer)]
    for layer in layers:
        layer.generator = g
    try:
        yield
    finally:
        for layer in layers:
            layer.generator = None


class Dropout(RandomLayer):
    """Each number is zero with probability `rate`; the others grow so that the expectation stays."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.rate:
            return x
        keep = self.uniform(x.shape, x) >= self.rate
        return x * keep / (1 - self.rate)


class DropBlock(RandomLayer):
    """DropBlock (Ghiasi, Lin, Le 2018): squares of each channel are zero, about `rate` of it in all.

    A square must fit the maps after the `halvings` that follow in the network, else it is made as small as they are.
    """

    def __init__(self, rate: float, side: int, halvings: int) -> None:
        super().__init__()
        self.rate, self.side, self.halvings = rate, side, halvings

    def forward(self, x: Tensor) -> Tensor:  # [M, C, side, side]
        if not self.training or not self.rate:
            return x
        side = min(self.side, x.shape[-1] // 2**self.halvings)
        places = x.shape[-1] - side + 1  # of a square's corner in one direction
        chance = self.rate * x.shape[-1] ** 2 / (side**2 * places**2)  # gamma, eq. 1
        corners = self.uniform(torch.Size((*x.shape[:2], places, places)), x) < chance
        dropped = F.max_pool2d(F.pad(corners.to(x.dtype), [side - 1] * 4), side, stride=1)
        keep = 1 - dropped
        return x * keep * (keep.numel() / keep.sum().clamp_min(1))
