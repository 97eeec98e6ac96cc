"""ResNet-12 as few-shot recognition uses it (Oreshkin et al. 2018, Lee et al. 2019): four residual blocks of three 3x3
convolutions, each block ending in a 2x2 max-pool, with dropout in the first two and DropBlock in the last two.
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from episodica.lazy_torch import Module, Tensor, nn
from episodica.models.backbone import Backbone
from episodica.models.random_layers import DropBlock, Dropout

CHANNELS = {"wide": (64, 160, 320, 640), "narrow": (64, 128, 256, 512)}
SLOPE = 0.1


class ResNet12(Backbone, name="resnet12"):
    """Four residual blocks; 64-160-320-640 and the mean over the map, or 64-128-256-512 and the maximum."""

    width: Annotated[
        Literal["wide", "narrow"],
        Field(description="64-160-320-640 with a global average pool, or 64-128-256-512 with a global max-pool"),
    ] = "wide"
    drop_rate: Annotated[
        float, Field(ge=0, lt=1, description="share dropped in training: numbers in blocks 1-2, squares in blocks 3-4")
    ] = 0.1
    drop_block: Annotated[
        int, Field(ge=1, description="side of the dropped squares, at most that of the last maps (5 at 84 px, 2 at 32)")
    ] = 5
    blocks: nn.Sequential = field(init=False)

    def __post_init__(self) -> None:
        squares = (DropBlock(self.drop_rate, self.drop_block, halvings) for halvings in (1, 0))
        drops = (Dropout(self.drop_rate), Dropout(self.drop_rate), *squares)
        widths = pairwise((3, *CHANNELS[self.width]))
        self.blocks = nn.Sequential(*(Block(i, o, drop) for (i, o), drop in zip(widths, drops, strict=True)))

    def map_shape(self, size: int) -> tuple[int, int, int]:
        return CHANNELS[self.width][-1], size // 16, size // 16

    def out_shape(self, size: int) -> tuple[int, ...]:
        return (CHANNELS[self.width][-1],)

    def pool(self, maps: Tensor) -> Tensor:
        return maps.mean((2, 3)) if self.width == "wide" else maps.amax((2, 3))

    def drop_last_activation(self) -> None:
        last = self.blocks[-1]
        assert isinstance(last, Block)
        last.end[-1] = nn.Identity()


class Block(Module):
    """Three convolutions beside a 1x1 shortcut, then pool and activation (monotone, so in the cheaper order)."""

    def __init__(self, inputs: int, outputs: int, drop: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_conv(inputs, outputs, 3),
            nn.LeakyReLU(SLOPE, inplace=True),
            *_conv(outputs, outputs, 3),
            nn.LeakyReLU(SLOPE, inplace=True),
            *_conv(outputs, outputs, 3),
        )
        self.shortcut = nn.Sequential(*_conv(inputs, outputs, 1))
        self.end = nn.Sequential(nn.MaxPool2d(2), nn.LeakyReLU(SLOPE, inplace=True))
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.end(self.body(x) + self.shortcut(x)))


def _conv(inputs: int, outputs: int, side: int) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    conv = nn.Conv2d(inputs, outputs, side, padding=side // 2, bias=False)
    nn.init.kaiming_normal_(conv.weight, SLOPE, mode="fan_out", nonlinearity="leaky_relu")
    return conv, nn.BatchNorm2d(outputs)
