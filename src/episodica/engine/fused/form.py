"""The form of block that the kernels compute: 3x3 conv, batch-norm, 2x2 max-pool, ReLU; and the state they share."""

import torch
from torch import Tensor, nn


def fits(block: nn.Module) -> bool:
    match list(block) if isinstance(block, nn.Sequential) else []:
        case [nn.Conv2d() as conv, nn.BatchNorm2d() as norm, nn.MaxPool2d() as pool, nn.ReLU()]:
            known = conv_fits(conv) and conv.bias is not None
            return known and _norm_fits(norm) and _pool_fits(pool)
    return False


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
