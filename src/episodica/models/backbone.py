"""The contract of a backbone: images become feature maps, block by block."""

from __future__ import annotations

from dataclasses import field
from itertools import accumulate, count
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from episodica.lazy_torch import Module, Tensor, nn, torch
from episodica.registry import Component

Triple = tuple[float, float, float]  # red, green, blue


class Backbone(Module, Component, kind="backbone"):
    """`blocks` are applied one after another, and what the last one gives is pooled to an embedding.

    It sees pixels from 0 to 1 less `mean`, divided by `std`. Blocks that do not train are the first ones; they stay in
    evaluation mode, so that their batch-norms are frozen with them.
    """

    mean: ClassVar[Triple] = (0.485, 0.456, 0.406)
    std: ClassVar[Triple] = (0.229, 0.224, 0.225)
    most_bytes: ClassVar[int] = 2**29  # of its weights with all that a learner adds: larger files are not read
    trained_on: ClassVar[str | None] = None  # the data set that its first weights come from

    train_: Annotated[
        Literal["all", "none"] | Annotated[int, Field(ge=1)],
        Field(description="which blocks train: all, none, or the last so many"),
    ] = "all"
    blocks: nn.Sequential
    reduced: torch.dtype | None = field(default=None, init=False)  # of its products, where not fp32; set by the engine
    pooled: bool = field(default=False, init=False)  # whether what comes in is embeddings already; set by the engine

    @property
    def input_size(self) -> int | None:
        """Pixels of a side on which it was trained; none where any size will do."""
        return None

    @property
    def pretrained(self) -> bool:
        """Whether it begins with weights that were trained on something."""
        return self.trained_on is not None

    @property
    def origin(self) -> str:
        """Where those weights come from, in words."""
        return self.name

    def load_pretrained(self) -> None:
        """Take the weights that it begins with; by default those that were drawn when it was made."""

    @property
    def frozen(self) -> int:
        """How many of the blocks, from the first on, keep their weights."""
        trained = {"all": len(self.blocks), "none": 0}.get(self.train_, self.train_)  # type: ignore[arg-type]
        return max(0, len(self.blocks) - int(trained))

    def freeze(self) -> None:
        for block in list(self.blocks)[: self.frozen]:
            block.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        for block in list(self.blocks)[: self.frozen]:
            block.eval()
        return self

    def check(self, size: int) -> None:
        """Raise a ValueError where the blocks leave nothing of images of this size, in pixels of a side."""
        if size < self.smallest_for(1):
            raise ValueError(
                f"{self.name} needs images of {self.smallest_for(1)} px and gets {size}: use a larger size"
            )

    def smallest_for(self, side: int) -> int:
        """The smallest images of which maps of this side are left."""
        return next(size for size in count(1) if self.map_shape(size)[1] >= side)

    def map_shape(self, size: int) -> tuple[int, int, int]:
        """Channels and sides of the last block's maps for images of this size."""
        raise NotImplementedError

    def out_shape(self, size: int) -> tuple[int, ...]:
        raise NotImplementedError

    def pool(self, maps: Tensor) -> Tensor:  # of the last block -> [M, *out_shape]
        raise NotImplementedError

    def drop_last_activation(self) -> None:
        """Leave out the non-linearity of the last block, so that embeddings have both signs."""
        raise NotImplementedError

    def maps(self, images: Tensor) -> tuple[Tensor, ...]:
        """What each block gives, in fp32. [M, channels, side, side]"""
        with self._arithmetic(images):
            found = tuple(accumulate(self.blocks, lambda x, block: block(x), initial=images))[1:]
        return tuple(maps.float() for maps in found)

    def last_maps(self, images: Tensor) -> Tensor:
        """What the last block gives, in fp32. [M, *map_shape]"""
        with self._arithmetic(images):
            return self.blocks(images).float()

    def forward(self, images: Tensor) -> Tensor:  # [M, 3, S, S] -> [M, *out_shape]
        return images if self.pooled else self.pool(self.last_maps(images))

    def _arithmetic(self, images: Tensor) -> torch.autocast:
        return torch.autocast(images.device.type, self.reduced, enabled=self.reduced is not None)
