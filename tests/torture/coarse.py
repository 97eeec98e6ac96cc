"""An encoder that averages squares of pixels: there in no time, and exact."""

import torch
from torch import nn


class Coarse(nn.Sequential):
    input_size = 16

    def __init__(self) -> None:
        colours = nn.Conv2d(3, 3, 1, bias=False)
        super().__init__(colours, nn.AdaptiveAvgPool2d(4), nn.Flatten())
        with torch.no_grad():
            colours.weight.zero_().flatten(1).fill_diagonal_(1)
