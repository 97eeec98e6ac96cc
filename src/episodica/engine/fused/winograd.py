"""3x3 convolution with padding by minimal filtering: 24 products where the definition has 72 (`winograd.cpp`).

The gradient of the inputs is a convolution again, by the weights upside down and with inputs and outputs exchanged.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from episodica.engine.fused import kernels


def convolve(maps: Tensor, weight: Tensor) -> Tensor:  # [M, I, H, W], [O, I, 3, 3] -> [M, O, H, W]
    """Maps that are channels-last; by torch where the kernel is not for so many channels."""
    if not _suits(weight):
        return kernels.last(F.conv2d(maps, weight, padding=1))
    return _Winograd.apply(kernels.last(maps), weight)  # type: ignore[return-value]


def conv_pool_relu(maps: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # -> [M, O, H / 2, W / 2]
    """With 2x2 max-pool and ReLU, where no gradient is asked for."""
    assert not torch.is_grad_enabled()
    if not _suits(weight):
        return kernels.norm_pool_relu(convolve(maps, weight), torch.ones_like(bias), bias, None)
    return kernels.winograd_pool_relu(kernels.last(maps), weight, bias.contiguous())


def conv_leaky(maps: Tensor, weight: Tensor, bias: Tensor, slope: float) -> Tensor:  # -> [M, O, H, W]
    """With leaky ReLU, where no gradient is asked for."""
    assert not torch.is_grad_enabled()
    if not _suits(weight):
        return kernels.last(F.leaky_relu_(F.conv2d(maps, weight, bias, padding=1), slope))
    return kernels.winograd_leaky(kernels.last(maps), weight, bias.contiguous(), slope)


def _suits(weight: Tensor) -> bool:
    return all(channels % 16 == 0 for channels in weight.shape[:2])


class _Winograd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(maps, weight)
        return kernels.winograd(maps, weight)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (maps, weight), gradient = ctx.saved_tensors, kernels.last(gradient)
        d_maps = d_weight = None
        if ctx.needs_input_grad[0]:
            d_maps = kernels.winograd_turned(gradient, weight)
        if ctx.needs_input_grad[1]:
            d_weight = kernels.winograd_weights(maps, gradient, weight)
        return d_maps, d_weight
