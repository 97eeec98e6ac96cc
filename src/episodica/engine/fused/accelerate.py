"""Where the compiled kernels are put to use: one call on a learner that is about to be trained."""

from collections.abc import Callable
from typing import Literal

from torch import nn

from episodica.engine.fused.build import CannotBuild, kernels
from episodica.engine.fused.first_block import FirstBlock
from episodica.engine.fused.form import fits
from episodica.engine.fused.later_block import LaterBlock
from episodica.errors import InputError
from episodica.learners.learner import Learner


def accelerate(learner: Learner, asked: str, notice: Callable[[str], None]) -> Literal["torch", "fused"]:
    """Let the learner, and every copy of it, compute by the fused kernels the blocks that they are for.

    Names, parameters and state stay what they are. Returns what computes, for the records.
    """
    blocks = learner.backbone.blocks
    if asked == "torch":
        return "torch"
    obstacle = _obstacle(blocks)
    if obstacle is None:
        try:
            remark = kernels().remark
            if remark is not None:
                notice(remark)
        except CannotBuild as error:
            obstacle = str(error)
            if asked == "auto":
                notice(f"slower than it could be: {obstacle}")
    if obstacle is None:
        _replace(blocks)
        return "fused"
    if asked == "fused":
        raise InputError(f"kernels = fused: {obstacle}; or take kernels = auto, which then does without")
    return "torch"


def _obstacle(blocks: nn.Sequential) -> str | None:
    if not any(fits(block) for block in blocks):
        return "they are for blocks of a 3x3 conv, batch-norm, 2x2 max-pool and ReLU, which this backbone has not"
    if any(parameter.device.type != "cpu" for parameter in blocks.parameters()):
        return "they are for the CPU"
    return None


def _replace(blocks: nn.Sequential) -> None:
    for i, block in enumerate(blocks):
        if fits(block):
            assert isinstance(block, nn.Sequential)
            kind = FirstBlock if next(block.parameters()).shape[1] == 3 and i == 0 else LaterBlock
            blocks[i] = kind(*block).train(block.training)
