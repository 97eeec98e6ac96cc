"""4-Conv (Vinyals et al. 2016, as in Snell et al. 2017): four blocks of 3x3 conv, batch-norm, ReLU and 2x2 max-pool.

The classic net has 64 channels throughout and is flattened. The released code of ERD widens the last block to 1600 and
takes the maximum over the map, so its embedding does not depend on the image size. The encoder of Relation Networks
(Sung et al. 2018) has the max-pool in the first two blocks only: a later module looks at its larger maps.
"""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from episodica.lazy_torch import Tensor, nn
from episodica.models.backbone import Backbone

CHANNELS = {"classic": (64, 64, 64, 64), "released": (64, 64, 64, 1600)}


class Conv4(Backbone, name="conv4"):
    """Four convolutional blocks; 64-64-64-64 flattened, or 64-64-64-1600 with a global max-pool."""

    width: Annotated[
        Literal["classic", "released"],
        Field(description="64-64-64-64 flattened, or the released code's 64-64-64-1600 with a global max-pool"),
    ] = "classic"
    pools: Annotated[
        Literal[4, 2],
        Field(description="blocks with a max-pool: all, or the first two as in the encoder of Relation Networks"),
    ] = 4
    blocks: nn.Sequential = field(init=False)

    def __post_init__(self) -> None:
        widths = pairwise((3, *CHANNELS[self.width]))
        self.blocks = nn.Sequential(*(block(i, o, pool=n < self.pools) for n, (i, o) in enumerate(widths)))

    def map_shape(self, size: int) -> tuple[int, int, int]:
        side = size // 2**self.pools
        return CHANNELS[self.width][-1], side, side

    def out_shape(self, size: int) -> tuple[int, ...]:
        channels, height, width = self.map_shape(size)
        return (channels,) if self.width == "released" else (channels * height * width,)

    def pool(self, maps: Tensor) -> Tensor:
        return maps.amax((2, 3)) if self.width == "released" else maps.flatten(1)

    def drop_last_activation(self) -> None:
        last = self.blocks[-1]
        assert isinstance(last, nn.Sequential)
        last[-1] = nn.Identity()


def block(inputs: int, outputs: int, *, pool: bool = True) -> nn.Sequential:
    """ReLU is monotone, so it may follow the pool: the same values and gradients from a quarter of the work."""
    conv, norm = nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs)
    return nn.Sequential(conv, norm, *([nn.MaxPool2d(2)] if pool else []), nn.ReLU(inplace=True))
