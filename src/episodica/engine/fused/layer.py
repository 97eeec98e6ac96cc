"""A layer: 3x3 convolution, batch-norm and leaky ReLU, the last two in one pass; and chains of them.

In training the bias of a convolution before a batch-norm cancels out, so it is left to the running mean. Where the
statistics are fixed, batch-norm is part of the convolution, and autograd has the gradient if one is asked for.
"""

from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from episodica.engine.fused import kernels
from episodica.engine.fused.form import Layer, layers
from episodica.engine.fused.statistics import Statistics, backward, measured
from episodica.engine.fused.winograd import conv_leaky, convolve


class Chain(nn.Sequential):
    """Has the modules of plain layers one after another, and so their state; only computes in another way."""

    def forward(self, input: Tensor) -> Tensor:
        return reduce(through, layers(self), input)


def through(maps: Tensor, layer: Layer) -> Tensor:  # [M, I, H, W] -> [M, O, H, W]
    norm = layer.norm
    if norm is not None and norm.training:
        maps, bias = convolve(maps, layer.conv.weight), layer.conv.bias
        return _NormLeaky.apply(maps, bias, norm.weight, norm.bias, norm, layer.slope)  # type: ignore[return-value]
    weight, bias = layer.folded()
    if not torch.is_grad_enabled():
        return conv_leaky(maps, weight, bias, layer.slope)
    return F.leaky_relu(convolve(maps, weight) + bias.view(-1, 1, 1), layer.slope)


class _NormLeaky(torch.autograd.Function):
    """y = leaky ReLU(gamma x' + beta), with the derivatives that `statistics` says."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, bias: Tensor | None, gamma: Tensor, beta: Tensor, norm: nn.BatchNorm2d, slope: float
    ) -> Tensor:
        found = measured(maps, norm, 0.0 if bias is None else bias)
        ctx.slope, ctx.has_bias = slope, bias is not None
        ctx.save_for_backward(maps, *found)
        return kernels.norm_leaky(maps, found.scale, found.shift, slope)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (maps, *statistics), gradient = ctx.saved_tensors, kernels.last(gradient)
        of = Statistics(*statistics)
        d_beta, product = kernels.norm_leaky_sums(maps, of.mean, of.scale, of.shift, ctx.slope, gradient)
        found = backward(of, maps.numel() // maps.shape[1], d_beta, product)
        d_maps = kernels.norm_leaky_backward(maps, of.scale, of.shift, ctx.slope, found.tilt, found.level, gradient)
        d_bias = torch.zeros_like(d_beta, dtype=torch.float32) if ctx.has_bias else None
        return d_maps, d_bias, found.d_gamma.float(), d_beta.float(), None, None
