"""The block of a ResNet-12: layers, and a last pass with all there is where they meet the shortcut.

Both batch-norms, the sum, the 2x2 max-pool and the leaky ReLU are one pass, so that no normed map is ever written.
"""

from functools import reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from episodica.engine.fused import kernels
from episodica.engine.fused.form import Layer, layers, slope_of
from episodica.engine.fused.layer import through
from episodica.engine.fused.statistics import Statistics, backward, measured
from episodica.engine.fused.winograd import convolve
from episodica.models.resnet12 import Block


class ResidualBlock(nn.Module):
    """Has the modules of a plain block, and so its state; only computes in another way."""

    def __init__(self, plain: Block) -> None:
        super().__init__()
        self.body, self.shortcut, self.end, self.drop = plain.body, plain.shortcut, plain.end, plain.drop
        self.training = plain.training

    def forward(self, x: Tensor) -> Tensor:  # [M, I, H, W] -> [M, O, H / 2, W / 2]
        x = kernels.last(x)
        *first, last = layers(self.body)
        (short,) = layers(self.shortcut)
        if last.learns_statistics != short.learns_statistics:
            return self.drop(self.end(self.body(x) + self.shortcut(x)))
        met = _met if last.learns_statistics else _met_fixed
        return self.drop(met(reduce(through, first, x), last, x, short, slope_of(self.end[-1])))


def _met(maps: Tensor, last: Layer, x: Tensor, short: Layer, slope: float) -> Tensor:
    assert last.norm is not None
    assert short.norm is not None
    ways = convolve(maps, last.conv.weight), kernels.last(F.conv2d(x, short.conv.weight))
    norms = last.norm, short.norm
    affine = [parameter for norm in norms for parameter in (norm.weight, norm.bias)]
    return _Join.apply(*ways, *affine, norms, slope)  # type: ignore[return-value]


def _met_fixed(maps: Tensor, last: Layer, x: Tensor, short: Layer, slope: float) -> Tensor:
    """Where the statistics are fixed, batch-norms are part of the convolutions."""
    (weight, bias), (short_weight, short_bias) = last.folded(), short.folded()
    a, b, shift = convolve(maps, weight), kernels.last(F.conv2d(x, short_weight)), bias + short_bias
    if torch.is_grad_enabled():
        return F.leaky_relu(F.max_pool2d(a + b + shift.view(-1, 1, 1), 2), slope)
    one = torch.ones_like(shift)
    return kernels.join(a, b, one, one, shift, slope, None)


class _Join(torch.autograd.Function):
    """y = leaky ReLU(max-pool(gamma_a a' + beta_a + gamma_b b' + beta_b)), with the derivatives that `statistics` says.

    The gradient before the two batch-norms is the same for both, so both betas have the same.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, *affine_norms_slope: Any) -> Tensor:
        *_, (norm_a, norm_b), slope = affine_norms_slope
        of_a, of_b = measured(a, norm_a), measured(b, norm_b)
        places = kernels.places_of(a, a.shape[1]) if any(ctx.needs_input_grad) else None
        ctx.slope = slope
        ctx.save_for_backward(a, b, places, *of_a, *of_b)
        return kernels.join(a, b, of_a.scale, of_b.scale, of_a.shift + of_b.shift, slope, places)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (a, b, places, *statistics), gradient = ctx.saved_tensors, kernels.last(gradient)
        of_a, of_b = Statistics(*statistics[:4]), Statistics(*statistics[4:])
        d_beta, *products = kernels.join_sums(a, b, of_a.mean, of_b.mean, ctx.slope, gradient, places)
        d_maps, d_affine = [], []
        for maps, of, product in zip((a, b), (of_a, of_b), products, strict=True):
            found = backward(of, maps.numel() // maps.shape[1], d_beta, product)
            given = of.scale, found.tilt, found.level, ctx.slope, gradient, places
            d_maps.append(kernels.join_backward(maps, *given))
            d_affine += [found.d_gamma.float(), d_beta.float()]
        return *d_maps, *d_affine, None, None
