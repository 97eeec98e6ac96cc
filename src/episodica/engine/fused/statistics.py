"""What batch-norm in training needs and gives back, apart from the passes over the maps (Ioffe and Szegedy 2015).

With x' = (x - mean) / sqrt(variance + eps) over n numbers a channel, and g the gradient of gamma x' + beta:

    d beta = sum g,    d gamma = sum g x',    dx = gamma / sqrt(variance + eps) (g - d beta / n - x' d gamma / n),

where the last two terms are linear in x: tilt * x + level, which one pass over the maps adds.
"""

from typing import NamedTuple

from torch import Tensor, nn

from episodica.engine.fused import kernels
from episodica.engine.fused.form import track


class Statistics(NamedTuple):
    """Of each channel, in double precision: batch-norm is scale * x + shift. [O] each"""

    mean: Tensor
    inverse: Tensor  # 1 / sqrt(variance + eps)
    scale: Tensor
    shift: Tensor


class Backward(NamedTuple):
    """What goes back: the gradient of gamma, and what the statistics add to that of x. [O] each"""

    d_gamma: Tensor
    tilt: Tensor
    level: Tensor


def measured(maps: Tensor, norm: nn.BatchNorm2d, bias: Tensor | float = 0.0) -> Statistics:
    """Those of the maps, which the norm tracks; a bias that the maps lack cancels out but in the running mean."""
    mean, variance = kernels.channel_moments(maps)
    track(norm, mean + bias, variance, maps.numel() // maps.shape[1])
    inverse = (variance + norm.eps).rsqrt()
    scale = norm.weight.detach() * inverse
    return Statistics(mean, inverse, scale, norm.bias.detach() - scale * mean)


def backward(of: Statistics, count: int, d_beta: Tensor, product: Tensor) -> Backward:
    """From sum g and sum g (x - mean), over so many numbers."""
    d_gamma = product * of.inverse
    tilt = -of.scale * d_gamma * of.inverse / count
    return Backward(d_gamma, tilt, -of.scale * d_beta / count - tilt * of.mean)
