"""The compiled kernels as functions on tensors; what they compute is said beside their code.

Maps are channels-last, statistics and sums in double precision. Shapes: M images of H x W pixels, O channels.
"""

from collections.abc import Sequence
from ctypes import Array, c_float, c_int, c_int64, c_void_p

import torch
from torch import Tensor

from episodica.engine.fused.build import library

TAPS = 27  # row, column, colour


def last(maps: Tensor) -> Tensor:
    return maps.contiguous(memory_format=torch.channels_last)


def random_views(
    images: Tensor,
    top: Tensor,
    left: Tensor,
    mirrored: Tensor,
    brightness: Tensor,
    contrast: Tensor,
    colour: Tensor,
    mean: Sequence[float],
    std: Sequence[float],
) -> Tensor:
    """Of uint8 [M, H, W, 3], by where each window begins, whether it is mirrored and three factors, [M] each."""
    m, h, w, colours = images.shape
    assert images.dtype == torch.uint8, images.dtype
    assert colours == len(mean) == len(std) == 3, images.shape
    assert {t.numel() for t in (top, left, mirrored, brightness, contrast, colour)} == {m}, "one number an image"
    assert {top.dtype, left.dtype} == {torch.int64}, (top.dtype, left.dtype)
    assert mirrored.dtype == torch.bool, mirrored.dtype
    assert {brightness.dtype, contrast.dtype, colour.dtype} == {torch.float32}
    out = torch.empty((m, 3, h, w), memory_format=torch.channels_last)
    std_, mean_ = images.new_tensor(std, dtype=torch.float32), images.new_tensor(mean, dtype=torch.float32)
    given = [
        t.contiguous() for t in (images, top, left, mirrored, brightness, contrast, colour, 1 / std_, -mean_ / std_)
    ]
    pixels, *rest = map(_pointer, given)
    library().random_views(pixels, c_int64(m), c_int64(h), c_int64(w), *rest, _pointer(out), _threads())
    return out


def patch_moments(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [27] and covariance [27, 27] of the H x W zero-padded patches of all images, in double precision."""
    sums = torch.empty(TAPS + 1, 32, dtype=torch.float64)
    library().patch_moments(*_images(images), _pointer(sums), _threads())
    lower = sums[:, : TAPS + 1].tril() / sums[TAPS, TAPS]
    mean, second = lower[TAPS, :TAPS], lower[:TAPS, :TAPS]
    return mean, second + second.tril(-1).T - mean.outer(mean)


def conv_pool_relu(images: Tensor, weights: Tensor, shift: Tensor, places: Tensor | None) -> Tensor:
    """Weights [27, O], shift [O]; writes which of four numbers each pooled one is."""
    out = _pooled(images, len(shift))
    weights, shift = weights.float().contiguous(), shift.float()
    given = (*_images(images), _pointer(weights), _pointer(shift), c_int64(len(shift)))
    library().conv_pool_relu(*given, _pointer(out), _pointer(places), _threads())
    return out


def conv_pool_relu_backward(images: Tensor, gradient: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the weights [27, O] and of the shift [O]."""
    channels = gradient.shape[1]
    sums = torch.empty(TAPS + 1, channels, dtype=torch.float64)
    given = (*_images(images), _pointer(gradient), _pointer(places), c_int64(channels))
    library().conv_pool_relu_backward(*given, _pointer(sums), _threads())
    return sums[:TAPS], sums[TAPS]


def channel_moments(maps: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [O] and variance [O] over all pixels."""
    sums = torch.empty(2, maps.shape[1], dtype=torch.float64)
    library().channel_moments(*_maps(maps), _pointer(sums), _threads())
    return sums[0], sums[1]


def norm_pool_relu(maps: Tensor, scale: Tensor, shift: Tensor, places: Tensor | None) -> Tensor:
    """ReLU(max-pool(scale * maps + shift)); writes which of four numbers each pooled one is."""
    out = _pooled(maps, maps.shape[1])
    scale, shift = scale.float(), shift.float()
    library().norm_pool_relu(
        *_maps(maps), _pointer(scale), _pointer(shift), _pointer(out), _pointer(places), _threads()
    )
    return out


def norm_pool_relu_sums(maps: Tensor, mean: Tensor, gradient: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """sum g and sum g (x - mean), over the numbers x that were the maxima. [O] each"""
    sums = torch.empty(2, maps.shape[1], dtype=torch.float64)
    mean = mean.float()
    given = (*_maps(maps), _pointer(mean), _pointer(gradient), _pointer(places))
    library().norm_pool_relu_sums(*given, _pointer(sums), _threads())
    return sums[0], sums[1]


def norm_pool_relu_backward(
    maps: Tensor, scale: Tensor, tilt: Tensor, level: Tensor, gradient: Tensor, places: Tensor
) -> Tensor:
    """scale * (the gradient where it goes) + tilt * maps + level."""
    out = torch.empty_like(maps)
    vectors = [vector.float() for vector in (scale, tilt, level)]
    given = (*_maps(maps), *map(_pointer, vectors), _pointer(gradient), _pointer(places))
    library().norm_pool_relu_backward(*given, _pointer(out), _threads())
    return out


def norm_leaky(maps: Tensor, scale: Tensor, shift: Tensor, slope: float) -> Tensor:
    """leaky ReLU(scale * maps + shift)."""
    out = torch.empty_like(maps)
    scale, shift = scale.float(), shift.float()
    library().norm_leaky(*_maps(maps), _pointer(scale), _pointer(shift), c_float(slope), _pointer(out), _threads())
    return out


def norm_leaky_sums(
    maps: Tensor, mean: Tensor, scale: Tensor, shift: Tensor, slope: float, gradient: Tensor
) -> tuple[Tensor, ...]:
    """sum g and sum g (x - mean), with g the gradient before the leaky ReLU. [O] each"""
    sums = torch.empty(2, maps.shape[1], dtype=torch.float64)
    vectors = [vector.float() for vector in (mean, scale, shift)]
    given = (*_maps(maps), *map(_pointer, vectors), c_float(slope), _pointer(gradient))
    library().norm_leaky_sums(*given, _pointer(sums), _threads())
    return sums.unbind()


def norm_leaky_backward(
    maps: Tensor, scale: Tensor, shift: Tensor, slope: float, tilt: Tensor, level: Tensor, gradient: Tensor
) -> Tensor:
    """scale * (the gradient before the leaky ReLU) + tilt * maps + level."""
    out = torch.empty_like(maps)
    scale, shift, tilt, level = (vector.float() for vector in (scale, shift, tilt, level))
    given = (*_maps(maps), _pointer(scale), _pointer(shift), c_float(slope), _pointer(tilt), _pointer(level))
    library().norm_leaky_backward(*given, _pointer(gradient), _pointer(out), _threads())
    return out


def join(
    a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, shift: Tensor, slope: float, places: Tensor | None
) -> Tensor:
    """leaky ReLU(max-pool(scale_a * a + scale_b * b + shift)); writes which of four numbers each pooled one is."""
    out = _pooled(a, a.shape[1])
    vectors = [vector.float() for vector in (scale_a, scale_b, shift)]
    given = (*_maps(a), _maps(b)[0], *map(_pointer, vectors), c_float(slope))
    library().join(*given, _pointer(out), _pointer(places), _threads())
    return out


def join_sums(
    a: Tensor, b: Tensor, mean_a: Tensor, mean_b: Tensor, slope: float, gradient: Tensor, places: Tensor
) -> tuple[Tensor, ...]:
    """sum g, sum g (x - mean_a) and sum g (x - mean_b), with g the gradient before the leaky ReLU. [O] each"""
    sums = torch.empty(3, a.shape[1], dtype=torch.float64)
    mean_a, mean_b = mean_a.float(), mean_b.float()
    given = (*_maps(a), _maps(b)[0], _pointer(mean_a), _pointer(mean_b), c_float(slope))
    library().join_sums(*given, _pointer(gradient), _pointer(places), _pointer(sums), _threads())
    return sums.unbind()


def join_backward(
    maps: Tensor, scale: Tensor, tilt: Tensor, level: Tensor, slope: float, gradient: Tensor, places: Tensor
) -> Tensor:
    """scale * (the gradient before the leaky ReLU, where it goes) + tilt * maps + level, for one of the maps."""
    out = torch.empty_like(maps)
    vectors = [vector.float() for vector in (scale, tilt, level)]
    given = (*_maps(maps), *map(_pointer, vectors), c_float(slope), _pointer(gradient), _pointer(places))
    library().join_backward(*given, _pointer(out), _threads())
    return out


def winograd(maps: Tensor, weight: Tensor) -> Tensor:
    """The convolution by weights [O, I, 3, 3]."""
    m, _, h, w = maps.shape
    out = torch.empty((m, len(weight), h, w), memory_format=torch.channels_last)
    given = (*_maps(maps), _pointer(weight), _numbers(*weight.stride()), c_int64(len(weight)))
    library().winograd(*given, _pointer(out), _threads())
    return out


def winograd_turned(maps: Tensor, weight: Tensor) -> Tensor:
    """The gradient of that convolution's maps: by the weights upside down, with inputs and outputs exchanged."""
    (m, _, h, w), (_, outputs, *_) = maps.shape, weight.shape
    out = torch.empty((m, outputs, h, w), memory_format=torch.channels_last)
    o, i, row, column = weight.stride()
    last = c_void_p(weight[:, :, -1:, -1:].data_ptr())
    given = (*_maps(maps), last, _numbers(i, o, -row, -column), c_int64(outputs))
    library().winograd(*given, _pointer(out), _threads())
    return out


def winograd_leaky(maps: Tensor, weight: Tensor, shift: Tensor, slope: float) -> Tensor:
    """leaky ReLU(the convolution + shift)."""
    m, _, h, w = maps.shape
    out = torch.empty((m, len(shift), h, w), memory_format=torch.channels_last)
    given = (*_maps(maps), _pointer(weight), _numbers(*weight.stride()), c_int64(len(shift)), _pointer(shift))
    library().winograd_leaky(*given, c_float(slope), _pointer(out), _threads())
    return out


def winograd_pool_relu(maps: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    """ReLU(max-pool(the convolution + shift))."""
    out = _pooled(maps, len(shift))
    given = (*_maps(maps), _pointer(weight), _numbers(*weight.stride()), c_int64(len(shift)), _pointer(shift))
    library().winograd_pool_relu(*given, _pointer(out), _threads())
    return out


def winograd_weights(maps: Tensor, gradient: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the weights, which lies as they do."""
    out, outputs = torch.empty_like(weight), c_int64(len(weight))
    given = (*_maps(maps), _pointer(gradient), outputs, _pointer(out), _numbers(*out.stride()))
    library().winograd_weights(*given, _threads())
    return out


def places_of(maps: Tensor, channels: int) -> Tensor:
    """Memory for which of its four numbers each pooled one is."""
    m, _, h, w = maps.shape
    return torch.empty(m * (h // 2) * (w // 2) * channels, dtype=torch.uint8)


def _pooled(maps: Tensor, channels: int) -> Tensor:
    m, _, h, w = maps.shape
    assert min(h, w) >= 2, f"nothing is left of maps of {h} x {w}"
    return torch.empty((m, channels, h // 2, w // 2), memory_format=torch.channels_last)


def _images(images: Tensor) -> tuple[c_void_p, c_int64, c_int64, c_int64]:
    assert images.shape[1] == 3, images.shape
    return _maps(images)[:4]


def _maps(maps: Tensor) -> tuple[c_void_p, c_int64, c_int64, c_int64, c_int64]:
    assert maps.dtype == torch.float32, maps.dtype
    assert maps.is_contiguous(memory_format=torch.channels_last)
    m, channels, h, w = maps.shape
    return _pointer(maps) or c_void_p(), c_int64(m), c_int64(h), c_int64(w), c_int64(channels)


def _pointer(tensor: Tensor | None) -> c_void_p | None:
    if tensor is None:
        return None
    assert tensor.device.type == "cpu", tensor.device
    return c_void_p(tensor.data_ptr())


def _numbers(*numbers: int) -> Array[c_int64]:
    return (c_int64 * len(numbers))(*numbers)


def _threads() -> c_int:
    return c_int(torch.get_num_threads())
