"""4-Conv (Vinyals et al. 2016, as in Snell et al. 2017): four blocks of 3x3 conv, batch-norm, ReLU and 2x2 max-pool.

The classic net has 64 channels throughout and is flattened. The released code of ERD widens the last block to 1600 and
takes the maximum over the map, so its embedding does not depend on the image size.
"""

from dataclasses import field
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from episodica.models.backbone import Backbone

CHANNELS = {"classic": (64, 64, 64, 64), "released": (64, 64, 64, 1600)}


class Conv4(Backbone, name="conv4"):
    """Four convolutional blocks; 64-64-64-64 flattened, or 64-64-64-1600 with a global max-pool."""

    width: Annotated[
        Literal["classic", "released"],
        Field(description="64-64-64-64 flattened, or the released code's 64-64-64-1600 with a global max-pool"),
    ] = "classic"
    blocks: nn.Sequential = field(init=False)
    smallest: ClassVar[int] = 16

    def __post_init__(self) -> None:
        widths = (3, *CHANNELS[self.width])
        self.blocks = nn.Sequential(*(block(i, o) for i, o in pairwise(widths)))

    def map_shape(self, size: int) -> tuple[int, int, int]:
        return CHANNELS[self.width][-1], size // 16, size // 16

    def out_shape(self, size: int) -> tuple[int, ...]:
        channels, height, width = self.map_shape(size)
        return (channels,) if self.width == "released" else (channels * height * width,)

    def pool(self, maps: Tensor) -> Tensor:
        return maps.amax((2, 3)) if self.width == "released" else maps.flatten(1)

    def drop_last_activation(self) -> None:
        last = self.blocks[-1]
        assert isinstance(last, nn.Sequential)
        last[-1] = nn.Identity()


def block(inputs: int, outputs: int) -> nn.Sequential:
    """ReLU is monotone, so it may follow the pool: the same values and gradients from a quarter of the work."""
    conv = nn.Conv2d(inputs, outputs, 3, padding=1)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.MaxPool2d(2), nn.ReLU(inplace=True))
