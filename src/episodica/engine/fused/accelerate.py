"""Where the compiled kernels are put to use: one call on a learner that is about to be trained."""

from collections.abc import Callable
from typing import Literal, TypeGuard

from torch import nn

from episodica.engine.fused.build import CannotBuild, kernels
from episodica.engine.fused.conv import Conv
from episodica.engine.fused.first_block import FirstBlock
from episodica.engine.fused.form import chain_fits, filters, fits, residual_fits
from episodica.engine.fused.later_block import LaterBlock
from episodica.engine.fused.layer import Chain
from episodica.engine.fused.residual_block import ResidualBlock
from episodica.errors import InputError
from episodica.learners.learner import Learner
from episodica.models.resnet12 import Block


def accelerate(learner: Learner, asked: str, notice: Callable[[str], None]) -> Literal["torch", "fused"]:
    """Let the learner, and every copy of it, compute by the kernels the blocks and convolutions that they are for.

    Names, parameters and state stay what they are. Returns what computes, for the records.
    """
    if asked == "torch":
        return "torch"
    obstacle = _obstacle(learner)
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
        _replace(learner, learner.backbone.blocks[0])
        return "fused"
    if asked == "fused":
        raise InputError(f"kernels = fused: {obstacle}; or take kernels = auto, which then does without")
    return "torch"


def _obstacle(learner: Learner) -> str | None:
    if not any(fits(module) or _alone(module) for module in learner.modules()):
        return "they are for 3x3 convolutions of 16, 32, 48, ... channels, which this backbone has not"
    if any(parameter.device.type != "cpu" for parameter in learner.parameters()):
        return "they are for the CPU"
    return None


def _alone(module: nn.Module) -> TypeGuard[nn.Conv2d]:
    """Whether it is a convolution that minimal filtering is for; one of a class of its own may do something else."""
    return type(module) is nn.Conv2d and filters(module)


def _replace(module: nn.Module, first: nn.Module) -> None:
    """What is fitting in the module, where `first` is the one that sees images."""
    for name, child in list(module.named_children()):
        if fits(child):
            assert isinstance(child, nn.Sequential)
            kind = FirstBlock if child is first and next(child.parameters()).shape[1] == 3 else LaterBlock
            setattr(module, name, kind(*child).train(child.training))
        elif residual_fits(child):
            assert isinstance(child, Block)
            setattr(module, name, ResidualBlock(child))
        elif chain_fits(child):
            assert isinstance(child, nn.Sequential)
            setattr(module, name, Chain(*child).train(child.training))
        elif _alone(child):
            setattr(module, name, Conv.of(child))
        else:
            _replace(child, first)
