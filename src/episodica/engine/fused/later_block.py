"""The later blocks of a 4-Conv: a convolution, then batch-norm, 2x2 max-pool and ReLU in one pass.

In training the bias of a convolution before a batch-norm cancels out, so it is left to the running mean. Where the
statistics are fixed, batch-norm is part of the convolution, and autograd has the gradient if one is asked for.
"""

from typing import Any

import torch
from torch import Tensor, nn

from episodica.engine.fused import kernels
from episodica.engine.fused.form import parts, running, track
from episodica.engine.fused.winograd import conv_pool_relu, convolve


class LaterBlock(nn.Sequential):
    """Has the modules of a plain block, and so its state; only computes in another way."""

    def forward(self, input: Tensor) -> Tensor:  # [M, I, H, W] -> [M, O, H / 2, W / 2]
        weight, bias, norm = parts(self)
        if norm is not None and norm.training:
            maps = convolve(input, weight)
            return _NormPoolReLU.apply(maps, bias, norm.weight, norm.bias, norm)  # type: ignore[return-value]
        if norm is not None:
            mean, variance = running(norm)
            scale = norm.weight * (variance + norm.eps).rsqrt()
            bias = (norm.bias + scale * (bias - mean)).float()
            weight = (weight * scale[:, None, None, None]).float()
        if not torch.is_grad_enabled():
            return conv_pool_relu(input, weight, bias)
        return nn.Sequential(*list(self)[2:])(convolve(input, weight) + bias.view(-1, 1, 1))


class _NormPoolReLU(torch.autograd.Function):
    """y = ReLU(max-pool(gamma x' + beta)) with x' = (x - mean) / sqrt(variance + eps), over n numbers a channel.

    Let g be the gradient of y, moved to the places of the maxima and zero elsewhere. Batch-norm's derivatives (Ioffe
    and Szegedy 2015, section 3) are then

        d beta = sum g,    d gamma = sum g x',    dx = gamma / sqrt(variance + eps) (g - d beta / n - x' d gamma / n),

    where the last two terms are linear in x: slope * x + level, which one pass over the maps adds.
    """

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
        d_beta, product = kernels.norm_pool_relu_sums(maps, mean, gradient, places)
        d_gamma = product * inverse
        slope = -scale * d_gamma * inverse / count
        level = -scale * d_beta / count - slope * mean
        d_maps = kernels.norm_pool_relu_backward(maps, scale, slope, level, gradient, places)
        return d_maps, torch.zeros_like(d_beta, dtype=torch.float32), d_gamma.float(), d_beta.float(), None
