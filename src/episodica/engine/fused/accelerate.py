"""Where the compiled kernels are put to use: one call on a learner that is about to be trained."""

from collections.abc import Callable
from typing import Literal

from torch import nn

from episodica.engine.fused.block import FusedBlock, fits
from episodica.engine.fused.build import CannotBuild, library
from episodica.errors import InputError
from episodica.learners.learner import Learner

Kernels = Literal["torch", "fused"]


def accelerate(learner: Learner, asked: str, notice: Callable[[str], None]) -> Kernels:
    """Let the learner, and every copy of it, compute its first block by the fused kernels where that is possible.

    Names, parameters and state stay what they are. Returns what computes, for the records.
    """
    blocks = learner.backbone.blocks
    if asked == "torch":
        return "torch"
    reason = _obstacle(blocks[0])
    if reason is None:
        try:
            library()
        except CannotBuild as error:
            reason = str(error)
            if asked == "auto":
                notice(f"slower than it could be: {reason}")
    if reason is None:
        blocks[0] = FusedBlock(*blocks[0]).train(blocks[0].training)  # type: ignore[misc]
        return "fused"
    if asked == "fused":
        raise InputError(f"kernels = fused: {reason}; or take kernels = auto, which then does without")
    return "torch"


def _obstacle(first: nn.Module) -> str | None:
    if not fits(first):
        return "they are for backbones that begin with a 3x3 conv of RGB images, batch-norm, 2x2 max-pool and ReLU"
    if any(parameter.device.type != "cpu" for parameter in first.parameters()):
        return "they are for the CPU"
    return None
