"""The forms that the kernels compute, and the state they share: blocks of 3x3 conv, batch-norm, 2x2 max-pool and ReLU;
layers of 3x3 conv, batch-norm and perhaps ReLU or leaky ReLU; the residual blocks of ResNet-12.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from episodica.models.resnet12 import Block


def fits(block: nn.Module) -> bool:
    match list(block) if isinstance(block, nn.Sequential) else []:
        case [nn.Conv2d() as conv, nn.BatchNorm2d() as norm, nn.MaxPool2d() as pool, nn.ReLU()]:
            known = conv_fits(conv) and conv.bias is not None
            return known and _norm_fits(norm) and _pool_fits(pool)
    return False


class Layer(NamedTuple):
    """A convolution, its batch-norm unless that is already part of it, and the slope of the activation below zero."""

    conv: nn.Conv2d
    norm: nn.BatchNorm2d | None
    slope: float  # 0 is ReLU, 1 is no activation

    @property
    def learns_statistics(self) -> bool:
        return self.norm is not None and self.norm.training

    def folded(self) -> tuple[Tensor, Tensor]:
        """Weight and bias with the batch-norm, whose statistics are fixed."""
        weight, norm = self.conv.weight, self.norm
        bias = weight.new_zeros(len(weight)) if self.conv.bias is None else self.conv.bias
        if norm is None:
            return weight, bias
        return fold_running(weight, bias, norm)


def fold(weight: Tensor, bias: Tensor, norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """A convolution that is its batch-norm too, with these statistics: weight [O, ...] and bias [O]."""
    scale = norm.weight * (variance + norm.eps).rsqrt()
    return weight * scale.view(-1, *[1] * (weight.ndim - 1)), norm.bias + scale * (bias - mean)


def fold_running(weight: Tensor, bias: Tensor, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """The same with the statistics that the batch-norm has kept."""
    weight, bias = fold(weight, bias, norm, *running(norm))
    return weight.float(), bias.float()


def layers(chain: nn.Sequential) -> list[Layer]:
    """The layers of a chain; none where it has another form. As in copies for evaluation, batch-norms may be gone."""
    found, rest = [], list(chain)
    while rest:
        conv, norm, *rest = rest if len(rest) > 1 else (None, None)
        slope = slope_of(rest.pop(0)) if rest and _is_activation(rest[0]) else 1.0
        if not isinstance(conv, nn.Conv2d) or not isinstance(norm, nn.BatchNorm2d | nn.Identity):
            return []
        found.append(Layer(conv, norm if isinstance(norm, nn.BatchNorm2d) else None, slope))
    return found


def slope_of(activation: nn.Module) -> float:
    """Below zero."""
    if isinstance(activation, nn.LeakyReLU):
        return activation.negative_slope
    return 0.0 if isinstance(activation, nn.ReLU) else 1.0


def _is_activation(module: nn.Module) -> bool:
    return isinstance(module, nn.ReLU | nn.LeakyReLU | nn.Identity)


def chain_fits(chain: nn.Module) -> bool:
    """Whether it is made of layers, with plain convolutions of which one at least is for minimal filtering."""
    found = layers(chain) if type(chain) is nn.Sequential else []
    convs = [layer.conv for layer in found]
    known = all(type(conv) is nn.Conv2d and conv_fits(conv) for conv in convs)
    return bool(found) and known and any(map(filters, convs)) and _norms_fit(found)


def residual_fits(block: nn.Module) -> bool:
    if type(block) is not Block or not chain_fits(block.body):
        return False
    short, end = layers(block.shortcut), list(block.end)
    plain = len(short) == 1 and type(short[0].conv) is nn.Conv2d and short[0].conv.kernel_size == (1, 1)
    pooled = len(end) == 2 and isinstance(end[0], nn.MaxPool2d) and _pool_fits(end[0]) and _is_activation(end[1])
    return plain and pooled and _norms_fit(short) and layers(block.body)[-1].slope == short[0].slope == 1


def _norms_fit(found: list[Layer]) -> bool:
    return all(layer.norm is not None and _norm_fits(layer.norm) for layer in found)


def filters(conv: nn.Conv2d) -> bool:
    """Whether minimal filtering is for it."""
    return conv_fits(conv) and conv.in_channels % 16 == 0


def conv_fits(conv: nn.Module) -> bool:
    """Whether it is a convolution 3x3 whose maps keep their size."""
    if not isinstance(conv, nn.Conv2d):
        return False
    form = conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.groups, conv.padding_mode
    known = form == ((3, 3), (1, 1), (1, 1), (1, 1), 1, "zeros")
    return known and conv.out_channels % 16 == 0 and conv.weight.dtype == torch.float32


def _norm_fits(norm: nn.BatchNorm2d) -> bool:
    return norm.affine and norm.track_running_stats and norm.momentum is not None


def _pool_fits(pool: nn.MaxPool2d) -> bool:
    form = [pool.kernel_size, pool.stride, pool.padding, pool.dilation, pool.ceil_mode, pool.return_indices]
    return form == [2, 2, 0, 1, False, False]


def parts(block: nn.Sequential) -> tuple[Tensor, Tensor, nn.BatchNorm2d | None]:
    """Weight and bias, and the batch-norm unless it is already part of them, as in copies for evaluation."""
    conv, norm, *_ = block
    assert isinstance(conv, nn.Conv2d)
    assert conv.bias is not None
    return conv.weight, conv.bias, norm if isinstance(norm, nn.BatchNorm2d) else None


def running(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean.double(), norm.running_var.double()


@torch.no_grad()
def track(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor, count: int) -> None:
    """Running statistics as BatchNorm2d keeps them: the variance of a sample, not of a population."""
    assert count > 1, "there is no variance of a single number"
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    norm.num_batches_tracked += 1
    norm.running_mean.lerp_(mean.float(), norm.momentum)
    norm.running_var.lerp_((variance * (count / (count - 1))).float(), norm.momentum)
