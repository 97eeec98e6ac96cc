"""A 3x3 convolution on its own, outside of the blocks that are fused as a whole, by minimal filtering."""

import torch
from torch import Tensor, nn

from episodica.engine.fused.winograd import convolve


class Conv(nn.Conv2d):
    """Has the weights of a plain one; only computes in another way."""

    @classmethod
    def of(cls, plain: nn.Conv2d) -> "Conv":
        with torch.device("meta"):  # weights are taken over, not drawn
            conv = cls(plain.in_channels, plain.out_channels, 3, padding=1, bias=plain.bias is not None)
        conv.weight, conv.bias = plain.weight, plain.bias
        return conv.train(plain.training)

    def forward(self, input: Tensor) -> Tensor:
        maps = convolve(input, self.weight)
        return maps if self.bias is None else maps + self.bias.view(-1, 1, 1)
