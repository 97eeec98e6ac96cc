"""The compiled kernels as functions on tensors; what they compute is said in `kernels.cpp`.

Shapes: M images of H x W pixels, O channels, 27 numbers in a patch (row, column, colour).
"""

from ctypes import c_int, c_int64, c_void_p
from typing import Any

import torch
from torch import Tensor

from episodica.engine.fused.build import library

TAPS = 27
LAST = torch.channels_last


def conv_pool_relu(images: Tensor, weights: Tensor, shift: Tensor) -> Tensor:
    """ReLU(max-pool(conv(images) + shift)), differentiable by weights [27, O] and shift [O]: [M, O, H / 2, W / 2].

    These are given, and their gradients returned, in double precision; the pass itself is in single.
    """
    assert not images.requires_grad, "images are given, not learnt: there is no gradient for them"
    return _ConvPoolReLU.apply(images.contiguous(memory_format=LAST), weights, shift)  # type: ignore[return-value]


class _ConvPoolReLU(torch.autograd.Function):
    """Only the places of the maxima are kept, a byte each: that is where the gradient goes."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weights: Tensor, shift: Tensor) -> Tensor:
        (m, _, h, w), channels = images.shape, len(shift)
        out = images.new_empty((m, channels, h // 2, w // 2)).contiguous(memory_format=LAST)
        learns = any(ctx.needs_input_grad)
        places = torch.empty(out.numel() if learns else 0, dtype=torch.uint8)
        weights, shift = weights.float().contiguous(), shift.float().contiguous()
        library().conv_pool_relu(
            *_sized(images), _pointer(weights), _pointer(shift), c_int64(channels), _pointer(out),
            _pointer(places) if learns else None, _threads(),
        )  # fmt: skip
        ctx.save_for_backward(images, places)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, Tensor]:  # type: ignore[override]
        images, places = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=LAST)
        channels = gradient.shape[1]
        sums = torch.empty(TAPS + 1, channels, dtype=torch.float64)
        library().conv_pool_relu_backward(
            *_sized(images), _pointer(gradient), _pointer(places), c_int64(channels), _pointer(sums), _threads()
        )
        return None, sums[:TAPS], sums[TAPS]


def patch_moments(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [27] and covariance [27, 27] of the H x W zero-padded patches of all images, in double precision."""
    images = images.contiguous(memory_format=LAST)
    sums = torch.empty(TAPS + 1, 32, dtype=torch.float64)
    library().patch_moments(*_sized(images), _pointer(sums), _threads())
    lower = sums[:, : TAPS + 1].tril() / sums[TAPS, TAPS]
    mean, second = lower[TAPS, :TAPS], lower[:TAPS, :TAPS]
    return mean, second + second.tril(-1).T - mean.outer(mean)


def _sized(images: Tensor) -> tuple[c_void_p, c_int64, c_int64, c_int64]:
    assert images.dtype == torch.float32, images.dtype
    m, colours, h, w = images.shape
    assert colours == 3, images.shape
    return _pointer(images), c_int64(m), c_int64(h), c_int64(w)


def _pointer(tensor: Tensor) -> c_void_p:
    assert tensor.device.type == "cpu", tensor.device
    return c_void_p(tensor.data_ptr())


def _threads() -> c_int:
    return c_int(torch.get_num_threads())
