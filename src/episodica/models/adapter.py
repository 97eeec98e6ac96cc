"""A small network over embeddings that are there already: it turns each a little, so that classes lie farther apart."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from episodica.lazy_torch import Module, Tensor, nn
from episodica.models.backbone import Backbone


class Adapter(Backbone):
    """Takes embeddings where other backbones take images, so it has no name to be configured by.

    What comes first is the encoder, which has done its work and stays as it is; what trains is a residual layer. It
    begins at zero: as long as nothing is learned, nothing is changed.
    """

    name: ClassVar[str] = "adapter"

    width: int
    blocks: nn.Sequential = field(init=False)

    def __post_init__(self) -> None:
        self.train_ = 1
        self.blocks = nn.Sequential(nn.Identity(), Turned(self.width))

    @property
    def layer(self) -> Turned:
        last = self.blocks[-1]
        assert isinstance(last, Turned)
        return last

    def map_shape(self, size: int) -> tuple[int, int, int]:
        return self.width, 1, 1

    def out_shape(self, size: int) -> tuple[int, ...]:
        return (self.width,)

    def pool(self, maps: Tensor) -> Tensor:
        return maps

    def drop_last_activation(self) -> None:
        """There is none."""


class Turned(Module):
    """x + W x. [M, D]"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.change = nn.Linear(width, width, bias=False)
        nn.init.zeros_(self.change.weight)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.change(x)
