"""The first block of a 4-Conv (3x3 conv of RGB images, batch-norm, 2x2 max-pool, ReLU) without its full-resolution map.

Batch-norm is affine once its statistics are known, so it can be folded into the convolution, in training too: the
statistics of w.x + b over all patches x follow from the mean m and the covariance C of the patches alone,

    mean = w.m + b,    variance = w.Cw,

and conv, max-pool and ReLU are then one pass. The folding is done by autograd on 27 x O numbers in double precision,
which gives every gradient through the statistics exactly, and to the bias the zero that it has.
"""

import torch
from torch import Tensor, nn

from episodica.engine.fused import kernels


class FusedBlock(nn.Sequential):
    """Has the modules of a plain block, and so its state; only computes in another way."""

    def forward(self, input: Tensor) -> Tensor:  # [M, 3, H, W] -> [M, O, H / 2, W / 2]
        conv, norm, *_ = self
        assert isinstance(conv, nn.Conv2d)
        assert conv.bias is not None
        weight, bias = conv.weight.permute(0, 2, 3, 1).flatten(1).double(), conv.bias.double()
        if isinstance(norm, nn.BatchNorm2d):  # in a copy for evaluation it may already be part of the convolution
            weight, bias = _folded(weight, bias, norm, input)
        return kernels.conv_pool_relu(input, weight.T, bias)


def _folded(weight: Tensor, bias: Tensor, norm: nn.BatchNorm2d, images: Tensor) -> tuple[Tensor, Tensor]:
    if norm.training:
        patch_mean, patch_covariance = kernels.patch_moments(images)
        mean = weight @ patch_mean + bias
        variance = ((weight @ patch_covariance) * weight).sum(1)
        _track(norm, mean.detach(), variance.detach(), images.numel() // images.shape[1])
    else:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        mean, variance = norm.running_mean.double(), norm.running_var.double()
    scale = norm.weight * (variance + norm.eps).rsqrt()
    return scale[:, None] * weight, norm.bias + scale * (bias - mean)


@torch.no_grad()
def _track(norm: nn.BatchNorm2d, mean: Tensor, variance: Tensor, count: int) -> None:
    """Running statistics as BatchNorm2d keeps them: the variance without bias."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    norm.num_batches_tracked += 1
    norm.running_mean.lerp_(mean.float(), norm.momentum)
    norm.running_var.lerp_((variance * (count / (count - 1))).float(), norm.momentum)


def fits(block: nn.Module) -> bool:
    """Whether a block is of the form that `FusedBlock` computes."""
    match list(block) if isinstance(block, nn.Sequential) else []:
        case [nn.Conv2d() as conv, nn.BatchNorm2d() as norm, nn.MaxPool2d() as pool, nn.ReLU()]:
            return _conv_fits(conv) and _norm_fits(norm) and _pool_fits(pool)
    return False


def _conv_fits(conv: nn.Conv2d) -> bool:
    form = conv.in_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.padding_mode
    known = form == (3, (3, 3), (1, 1), (1, 1), (1, 1), "zeros")
    return known and conv.bias is not None and conv.out_channels % 16 == 0 and conv.weight.dtype == torch.float32


def _norm_fits(norm: nn.BatchNorm2d) -> bool:
    return norm.affine and norm.track_running_stats and norm.momentum is not None


def _pool_fits(pool: nn.MaxPool2d) -> bool:
    form = [pool.kernel_size, pool.stride, pool.padding, pool.dilation, pool.ceil_mode, pool.return_indices]
    return form == [2, 2, 0, 1, False, False]
