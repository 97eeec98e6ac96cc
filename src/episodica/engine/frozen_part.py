"""The part of a backbone that does not train: what it makes of an image is computed once and kept for the whole run.

The model in training and the old one share it, so there is one table of images as they are, for training without random
views, for the choice of exemplars and for evaluation; and in each session one of the views in a bank. Where no block
trains and the learner compares vectors, these are kept, else the maps of the last frozen block, in fp32.
"""

from collections.abc import Callable
from copy import copy
from typing import Self, TypeVar

import torch
from torch import Tensor, nn

from episodica.data.stream import TaskStream
from episodica.engine.embedder import folded
from episodica.engine.kept_table import KeptTable
from episodica.learners.learner import Learner
from episodica.models.backbone import Backbone

Module = TypeVar("Module", bound=nn.Module)

CHUNK = 32  # images: what a chunk holds beyond those asked for is soon asked for, and its maps stay in the caches
NO_ROOM = (
    "what the frozen blocks make of {what} is not kept but computed each time: {reason}; make room, or set "
    "EPISODICA_CACHE to a folder on a larger disk"
)


class FrozenPart:
    """The frozen blocks of a learner's backbone as they are now, with their batch-norms folded."""

    @classmethod
    def of(
        cls, learner: Learner, stream: TaskStream, pixels: Callable[[Tensor], Tensor], notice: Callable[[str], None]
    ) -> Self | None:
        """None where every block trains; or where there is no room to keep anything, which is then said."""
        if not learner.backbone.frozen:
            return None
        try:
            return cls(learner, stream, pixels, notice)
        except OSError as error:
            notice(NO_ROOM.format(what="images", reason=error))
            return None

    def __init__(
        self, learner: Learner, stream: TaskStream, pixels: Callable[[Tensor], Tensor], notice: Callable[[str], None]
    ) -> None:
        """`pixels` reads rows of the store as evaluation sees them."""
        self._notice = notice
        backbone = learner.backbone
        self._pools = learner.vectors and backbone.frozen == len(backbone.blocks)
        self._network = folded(_with_blocks(backbone, slice(backbone.frozen)))
        pools = (*stream.train, *stream.test, stream.unseen)
        rows = [chunk for pool in pools if len(pool) for chunk in pool.images().split(CHUNK)]
        one = self._compute(pixels(rows[0][:1]))
        self._shape, self._device = one.shape[1:], one.device
        self.images = KeptTable(rows, lambda numbers: self._compute(pixels(numbers)), self._shape, self._device)

    def of_views(self, count: int, pixels: Callable[[Tensor], Tensor]) -> KeptTable | None:
        """Of so many views, which `pixels` makes by their numbers; none where there is no room for them."""
        chunks = torch.arange(count).split(CHUNK)
        try:
            return KeptTable(chunks, lambda numbers: self._compute(pixels(numbers)), self._shape, self._device)
        except OSError as error:
            self._notice(NO_ROOM.format(what="views", reason=error))
            return None

    def above(self, learner: Learner) -> Learner:
        """The same learner, sharing all of its weights, for what is kept instead of pixels."""
        rest = _shallow(learner)
        rest.backbone = _with_blocks(learner.backbone, slice(learner.backbone.frozen, None))
        rest.backbone.pooled = self._pools
        return rest

    @torch.no_grad()
    def _compute(self, pixels: Tensor) -> Tensor:
        return self._network(pixels) if self._pools else self._network.last_maps(pixels)


def _with_blocks(backbone: Backbone, chosen: slice) -> Backbone:
    """The backbone with some of its blocks alone."""
    part = _shallow(backbone)
    part.blocks = nn.Sequential(*list(backbone.blocks)[chosen])
    return part


def _shallow(module: Module) -> Module:
    """A copy whose parts are the same objects, and can be exchanged in it alone."""
    shared = copy(module)
    shared._modules = dict(module._modules)
    return shared
