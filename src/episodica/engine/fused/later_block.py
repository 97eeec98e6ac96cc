"""The later blocks of a 4-Conv: torch's convolution, then batch-norm, 2x2 max-pool and ReLU in one pass.

In training the bias of a convolution before a batch-norm cancels out, so it is left to the running mean.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from episodica.engine.fused import kernels
from episodica.engine.fused.form import parts, running, track


class LaterBlock(nn.Sequential):
    """Has the modules of a plain block, and so its state; only computes in another way."""

    def forward(self, input: Tensor) -> Tensor:  # [M, I, H, W] -> [M, O, H / 2, W / 2]
        weight, bias, norm = parts(self)
        learning = norm is not None and norm.training
        if torch.is_grad_enabled() and not learning:
            return super().forward(input)  # nobody learns by fixed statistics: no kernel has that gradient
        maps = kernels.last(F.conv2d(input, weight, padding=1))
        if norm is None:
            return kernels.norm_pool_relu(maps, torch.ones_like(bias), bias, None)
        if learning:
            return _NormPoolReLU.apply(maps, bias, norm.weight, norm.bias, norm)  # type: ignore[return-value]
        mean, variance = running(norm)
        scale = norm.weight * (variance + norm.eps).rsqrt()
        return kernels.norm_pool_relu(maps, scale, norm.bias + scale * (bias - mean), None)


class _NormPoolReLU(torch.autograd.Function):
    """Batch-norm's derivative (Ioffe and Szegedy 2015) with a gradient that is zero but at the places of the maxima."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, norm: nn.BatchNorm2d) -> Tensor:
        mean, variance = kernels.channel_moments(maps)
        track(norm, mean + bias, variance, maps.numel() // maps.shape[1])
        inverse = (variance + norm.eps).rsqrt()
        scale = gamma * inverse
        places = kernels.places_of(maps, len(mean)) if any(ctx.needs_input_grad) else None
        ctx.save_for_backward(maps, mean, inverse, scale, places)
        return kernels.norm_pool_relu(maps, scale, beta - scale * mean, places)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        maps, mean, inverse, scale, places = ctx.saved_tensors
        gradient, count = kernels.last(gradient), maps.numel() // maps.shape[1]
        beta, product = kernels.norm_pool_relu_sums(maps, mean, gradient, places)
        gamma = product * inverse
        slope = -scale * gamma * inverse / count
        level = -scale * beta / count - slope * mean
        back = kernels.norm_pool_relu_backward(maps, scale, slope, level, gradient, places)
        return back, torch.zeros_like(beta, dtype=torch.float32), gamma.float(), beta.float(), None
