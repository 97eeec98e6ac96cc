"""The first block of a 4-Conv (3x3 conv of RGB images, batch-norm, 2x2 max-pool, ReLU) without its full-resolution map.

Batch-norm is affine once its statistics are known, so it can be folded into the convolution, in training too: the
statistics of w.x + b over all patches x follow from the mean m and the covariance C of the patches alone,

    mean = w.m + b,    variance = w.Cw,

and conv, max-pool and ReLU are then one pass. The folding is done by autograd on 27 x O numbers in double precision,
which gives every gradient through the statistics exactly, and to the bias the zero that it has.
"""

from typing import Any

import torch
from torch import Tensor, nn

from episodica.engine.fused import kernels
from episodica.engine.fused.form import fold, parts, running, track


class FirstBlock(nn.Sequential):
    """Has the modules of a plain block, and so its state; only computes in another way."""

    def forward(self, input: Tensor) -> Tensor:  # [M, 3, H, W] -> [M, O, H / 2, W / 2]
        assert not input.requires_grad, "images are given, not learnt: there is no gradient for them"
        images = kernels.last(input)
        weight, bias, norm = parts(self)
        weight, bias = weight.permute(0, 2, 3, 1).flatten(1).double(), bias.double()
        if norm is not None:
            mean, variance = _statistics(weight, bias, norm, images) if norm.training else running(norm)
            weight, bias = fold(weight, bias, norm, mean, variance)
        return _ConvPoolReLU.apply(images, weight.T, bias)  # type: ignore[return-value]


def _statistics(weight: Tensor, bias: Tensor, norm: nn.BatchNorm2d, images: Tensor) -> tuple[Tensor, Tensor]:
    patch_mean, patch_covariance = kernels.patch_moments(images)
    mean = weight @ patch_mean + bias
    variance = ((weight @ patch_covariance) * weight).sum(1)
    track(norm, mean, variance, images.numel() // images.shape[1])
    return mean, variance


class _ConvPoolReLU(torch.autograd.Function):
    """y = ReLU(max over the window of (x . weights + shift)), x the patches of 27 numbers.

    The gradient g of y goes to the patch x* that holds each maximum, so d weights = sum x* g^T and d shift = sum g;
    where ReLU gave 0 there is none. Only the places of the maxima are kept, a byte each.
    """

    @staticmethod
    def forward(ctx: Any, images: Tensor, weights: Tensor, shift: Tensor) -> Tensor:
        places = kernels.places_of(images, len(shift)) if any(ctx.needs_input_grad) else None
        ctx.save_for_backward(images, places)
        return kernels.conv_pool_relu(images, weights, shift, places)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        images, places = ctx.saved_tensors
        return None, *kernels.conv_pool_relu_backward(images, kernels.last(gradient), places)
