"""Random training views and plain evaluation views of stored images, a whole batch at a time.

Stored images are uint8 [M, H, W, 3]; views are normalised float32 [M, 3, S, S] in channels-last memory.
Shapes: M images, H W stored pixels, S pixels the network sees.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from episodica.lazy_torch import F, Tensor, torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from episodica.config.sections import AugmentConfig

    View = Callable[[Tensor, AugmentConfig, "Draws"], Tensor]

GREY = (0.299, 0.587, 0.114)  # ITU-R 601
WIDEST = 4 / 3


class Draws(NamedTuple):
    """All that is random about a view: uniform numbers in [0, 1), each [M].

    Drawn whatever the configuration, so that switching one augmentation off leaves the others as they were.
    """

    top: Tensor
    left: Tensor
    area: Tensor
    aspect: Tensor
    flip: Tensor
    brightness: Tensor
    contrast: Tensor
    colour: Tensor

    @classmethod
    def of(cls, count: int, g: torch.Generator) -> Draws:
        return cls(*torch.rand(len(cls._fields), count, generator=g))

    def among(self, places: Tensor) -> Draws:
        return Draws(*(numbers[places] for numbers in self))

    def to(self, device: torch.device) -> Draws:
        return Draws(*torch.stack(self).to(device))


def view(images: Tensor, how: AugmentConfig, draws: Draws) -> Tensor:
    """The view of each image that the draws say: crop and flip, then brightness, contrast and colour jitter."""
    draws = draws.to(images.device)
    if how.crop == "resized":
        x = resized_crop(images, how, draws)
    else:
        x = resized(unit(padded_crop(images, how, draws)), size_seen(images, how))
    return normalised(jittered(x, how, draws), how)


def augmented(images: Tensor, how: AugmentConfig, g: torch.Generator, view: View = view) -> Tensor:
    """A random view of each image, or the plain one where nothing is random."""
    return view(images, how, Draws.of(len(images), g)) if how.random else plain(images, how)


def plain(images: Tensor, how: AugmentConfig) -> Tensor:
    """The evaluation view: the whole image."""
    return normalised(resized(unit(images), size_seen(images, how)), how)


def centred(images: Tensor, how: AugmentConfig) -> Tensor:
    """The view on which exemplars are chosen: the plain one or, with `centre`, the middle of a larger one, enlarged
    bilinearly, as the released code does."""
    if not how.centre:
        return plain(images, how)
    size = size_seen(images, how)
    larger = round(size * 92 / 84)
    start = (larger - size) // 2
    middle = slice(start, start + size)
    return normalised(resized(unit(images), larger, "bilinear")[..., middle, middle], how)


def size_seen(images: Tensor, how: AugmentConfig) -> int:
    return images.shape[1] if how.size is None else how.size


def padded_crop(images: Tensor, how: AugmentConfig, draws: Draws) -> Tensor:
    """A window of the zero-padded image, as large as the image, mirrored or not: uint8 [M, H, W, 3]."""
    m, h, w, _ = images.shape
    p = padding(how)
    image, row, column = (torch.arange(n, device=images.device) for n in (m, h, w))
    top, left = (p + start[:, None] for start in window(how, draws))
    rows = image[:, None] * (h + 2 * p) + top + row
    columns = left + torch.where(flipped(how, draws)[:, None], column.flip(0), column)
    pixels = rows[:, :, None] * (w + 2 * p) + columns[:, None, :]
    padded = F.pad(images, (0, 0, p, p, p, p)).reshape(-1, 3)
    return padded.index_select(0, pixels.view(-1)).view(m, h, w, 3)


def padding(how: AugmentConfig) -> int:
    return how.padding if how.crop == "padded" else 0


def window(how: AugmentConfig, draws: Draws) -> tuple[Tensor, Tensor]:
    """Where a padded crop begins: its top and left in the image, negative in the padding. int64 [M] each"""
    p = padding(how)
    top, left = ((u * (2 * p + 1)).long() - p for u in (draws.top, draws.left))
    return top, left


def resized_crop(images: Tensor, how: AugmentConfig, draws: Draws) -> Tensor:
    """A box of random area and aspect ratio, stretched to the size seen, mirrored or not: [M, 3, S, S]."""
    smallest, largest = how.scale
    area = smallest + (largest - smallest) * draws.area
    aspect = torch.exp(math.log(WIDEST) * (2 * draws.aspect - 1))
    height, width = (area / aspect).sqrt().clamp(max=1), (area * aspect).sqrt().clamp(max=1)
    # Grid coordinates span -1..1: a box is inside while its centre is within 1 - its share of the side.
    down, right = (1 - height) * (2 * draws.top - 1), (1 - width) * (2 * draws.left - 1)
    stride, zero = torch.where(flipped(how, draws), -width, width), torch.zeros_like(width)
    boxes = torch.stack((stride, zero, right, zero, height, down), dim=1).view(-1, 2, 3)
    size = size_seen(images, how)
    grid = F.affine_grid(boxes, [len(images), 3, size, size], align_corners=False)
    return F.grid_sample(unit(images), grid, padding_mode="border", align_corners=False)


def flipped(how: AugmentConfig, draws: Draws) -> Tensor:
    return (draws.flip < 0.5) & how.flip


def jittered(x: Tensor, how: AugmentConfig, draws: Draws) -> Tensor:
    """Blend, in place, with black, then with the image's mean grey, then with each pixel's own grey."""
    if how.brightness > 0:
        x.mul_(factor(how.brightness, draws.brightness)).clamp_(0, 1)
    if how.contrast > 0:
        mean_grey = grey(x.mean((2, 3), keepdim=True))
        x.lerp_(mean_grey, 1 - factor(how.contrast, draws.contrast)).clamp_(0, 1)
    if how.colour > 0:
        x.lerp_(grey(x), 1 - factor(how.colour, draws.colour)).clamp_(0, 1)
    return x


def factor(strength: float, u: Tensor) -> Tensor:
    return (1 + strength * (2 * u - 1)).view(-1, 1, 1, 1)


def grey(x: Tensor) -> Tensor:
    return (x * x.new_tensor(GREY).view(3, 1, 1)).sum(1, keepdim=True)


def unit(images: Tensor) -> Tensor:
    """New floats in [0, 1], a plane per colour because elementwise work is quickest on that: [M, 3, H, W]."""
    return images.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format).div_(255)


def resized(x: Tensor, size: int, kernel: str = "bicubic") -> Tensor:
    if x.shape[-1] == size:
        return x
    # When enlarging, `antialias` smooths nothing but selects PIL's cubic kernel (a = -0.5, not -0.75).
    return F.interpolate(x, size=(size, size), mode=kernel, antialias=True).clamp_(0, 1)


def normalised(x: Tensor, how: AugmentConfig) -> Tensor:
    mean, std = (x.new_tensor(v).view(3, 1, 1) for v in (how.mean, how.std))
    return x.mul_(1 / std).sub_(mean / std).contiguous(memory_format=torch.channels_last)
