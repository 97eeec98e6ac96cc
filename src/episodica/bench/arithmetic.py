"""The useful arithmetic of a training step: multiplications and additions of its convolutions, which nothing avoids.

Batch-norm, pooling, ReLU, distances and the optimiser are left out: they are small, and a fast path may fuse them away.
"""

from collections.abc import Iterator
from typing import NamedTuple

from torch import nn


class Conv(NamedTuple):
    """A 3x3 convolution with padding, of maps with this many channels and pixels of a side."""

    inputs: int
    outputs: int
    side: int

    @property
    def gflop(self) -> float:
        """Of one image, one way: forward, gradient of the weight and gradient of the input cost the same."""
        return 2e-9 * self.side**2 * 9 * self.inputs * self.outputs


def convolutions(blocks: nn.Sequential, size: int) -> Iterator[Conv]:
    """Those of a 4-Conv, for images of this size."""
    for block in blocks:
        assert isinstance(block, nn.Sequential)
        conv = block[0]
        assert isinstance(conv, nn.Conv2d)
        assert (conv.kernel_size, conv.stride, conv.padding) == ((3, 3), (1, 1), (1, 1))
        yield Conv(conv.in_channels, conv.out_channels, size)
        size //= 2 if any(isinstance(layer, nn.MaxPool2d) for layer in block) else 1


def forward_gflop(blocks: nn.Sequential, size: int, images: int) -> float:
    return images * sum(conv.gflop for conv in convolutions(blocks, size))


def step_gflop(blocks: nn.Sequential, size: int, images: int, *, teacher: bool) -> float:
    """Forward and both gradients, but no gradient for the images; and the old model's forward where it runs."""
    first, *_ = convolutions(blocks, size)
    forward = forward_gflop(blocks, size, images)
    return (4 if teacher else 3) * forward - images * first.gflop
