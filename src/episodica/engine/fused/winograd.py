"""3x3 convolution with padding by minimal filtering: 16 products where the definition has 36 (`winograd.cpp`).

The gradient of the inputs is a convolution again, by the weights upside down and with inputs and outputs exchanged.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from episodica.engine.fused import kernels

G = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
GG = torch.kron(G, G)  # [16, 9]


def convolve(maps: Tensor, weight: Tensor) -> Tensor:  # [M, I, H, W], [O, I, 3, 3] -> [M, O, H, W]
    """Maps that are channels-last; by torch where the kernel is not for so many channels."""
    if any(channels % 16 for channels in weight.shape[:2]):
        return kernels.last(F.conv2d(maps, weight, padding=1))
    return _Winograd.apply(kernels.last(maps), weight)  # type: ignore[return-value]


class _Winograd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(maps, weight)
        return kernels.winograd(maps, _transformed(weight.permute(2, 3, 1, 0)))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (maps, weight), gradient = ctx.saved_tensors, kernels.last(gradient)
        d_maps = d_weight = None
        if ctx.needs_input_grad[0]:
            d_maps = kernels.winograd(gradient, _transformed(weight.flip(2, 3).permute(2, 3, 0, 1)))
        if ctx.needs_input_grad[1]:
            found = GG.T @ kernels.winograd_weights(maps, gradient).flatten(1)
            d_weight = found.view(3, 3, *weight.shape[1::-1]).permute(3, 2, 0, 1)
        return d_maps, d_weight


def _transformed(weight: Tensor) -> Tensor:  # [3, 3, I, O] -> [16, I, O]
    return (GG @ weight.reshape(9, -1)).view(16, *weight.shape[2:])
