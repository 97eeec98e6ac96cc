"""The later blocks of a 4-Conv: a convolution, then batch-norm, 2x2 max-pool and ReLU in one pass.

In training the bias of a convolution before a batch-norm cancels out, so it is left to the running mean. Where the
statistics are fixed, batch-norm is part of the convolution, and autograd has the gradient if one is asked for.
"""

from typing import Any

import torch
from torch import Tensor, nn

from episodica.engine.fused import kernels
from episodica.engine.fused.form import fold_running, parts
from episodica.engine.fused.statistics import Statistics, backward, measured
from episodica.engine.fused.winograd import conv_pool_relu, convolve


class LaterBlock(nn.Sequential):
    """Has the modules of a plain block, and so its state; only computes in another way."""

    def forward(self, input: Tensor) -> Tensor:  # [M, I, H, W] -> [M, O, H / 2, W / 2]
        weight, bias, norm = parts(self)
        if norm is not None and norm.training:
            maps = convolve(input, weight)
            return _NormPoolReLU.apply(maps, bias, norm.weight, norm.bias, norm)  # type: ignore[return-value]
        if norm is not None:
            weight, bias = fold_running(weight, bias, norm)
        if not torch.is_grad_enabled():
            return conv_pool_relu(input, weight, bias)
        return nn.Sequential(*list(self)[2:])(convolve(input, weight) + bias.view(-1, 1, 1))


class _NormPoolReLU(torch.autograd.Function):
    """y = ReLU(max-pool(gamma x' + beta)), with the derivatives that `statistics` says.

    There the gradient is that of y, moved to the places of the maxima and zero elsewhere.
    """

    @staticmethod
    def forward(ctx: Any, maps: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor, norm: nn.BatchNorm2d) -> Tensor:
        found = measured(maps, norm, bias)
        places = kernels.places_of(maps, maps.shape[1]) if any(ctx.needs_input_grad) else None
        ctx.save_for_backward(maps, places, *found)
        return kernels.norm_pool_relu(maps, found.scale, found.shift, places)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (maps, places, *statistics), gradient = ctx.saved_tensors, kernels.last(gradient)
        of = Statistics(*statistics)
        d_beta, product = kernels.norm_pool_relu_sums(maps, of.mean, gradient, places)
        found = backward(of, maps.numel() // maps.shape[1], d_beta, product)
        d_maps = kernels.norm_pool_relu_backward(maps, of.scale, found.tilt, found.level, gradient, places)
        return d_maps, torch.zeros_like(d_beta, dtype=torch.float32), found.d_gamma.float(), d_beta.float(), None
