"""What the machine can do: its best convolution, forward and backward as in the network, in fp32 and channels-last."""

import torch

from episodica.bench.arithmetic import Conv
from episodica.bench.timing import Case
from episodica.rng import generator

SHAPES = (Conv(64, 64, 16), Conv(64, 64, 32), Conv(128, 128, 16), Conv(256, 256, 8))
IMAGES = 160


def best_convolutions(images: int = IMAGES) -> list[Case]:
    """Candidates for the peak: the largest layer of a 4-Conv, and shapes that are kinder to the machine."""
    return [_case(shape, images) for shape in SHAPES]


def _case(shape: Conv, images: int) -> Case:
    g = generator("bench", *shape)
    x = torch.randn(images, shape.inputs, shape.side, shape.side, generator=g)
    x = x.contiguous(memory_format=torch.channels_last).requires_grad_()
    weight = torch.randn(shape.outputs, shape.inputs, 3, 3, generator=g)
    weight = weight.contiguous(memory_format=torch.channels_last).requires_grad_()
    with torch.no_grad():
        slope = torch.ones_like(torch.conv2d(x, weight, padding=1))

    def run() -> None:
        torch.autograd.grad(torch.conv2d(x, weight, padding=1), (x, weight), slope)

    name = f"convolution, {shape.inputs} to {shape.outputs} channels, {shape.side} px"
    return Case(name, run, gflop=3 * images * shape.gflop)
