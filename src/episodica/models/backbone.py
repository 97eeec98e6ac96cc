"""The contract of a backbone: images become feature maps, block by block."""

from typing import ClassVar

from torch import Tensor, nn

from episodica.registry import Component


class Backbone(nn.Module, Component, kind="backbone"):
    """`blocks` are applied one after another; `out_shape` is the shape of an embedding for a given image size."""

    blocks: nn.Sequential
    smallest: ClassVar[int]  # image, in pixels of a side, of which anything is left at the end

    def out_shape(self, size: int) -> tuple[int, ...]:
        raise NotImplementedError

    def forward(self, images: Tensor) -> Tensor:  # [M, 3, S, S] -> [M, *out_shape]
        raise NotImplementedError
