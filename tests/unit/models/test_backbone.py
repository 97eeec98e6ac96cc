"""Which blocks train: those that do not keep their weights and the statistics of their batch-norms."""

from typing import Any

import pytest
import torch

from episodica.config import resolve
from episodica.engine.experiment import new_learner
from episodica.models.conv4 import Conv4
from episodica.rng import generator, seeded

CPU = torch.device("cpu")


def conv4(train: Any) -> Conv4:
    with seeded("conv4"):
        return Conv4(train_=train)


@pytest.mark.parametrize(("train", "frozen"), [("all", 0), (4, 0), (9, 0), (3, 1), (1, 3), ("none", 4)])
def test_the_last_blocks_train(train, frozen):
    backbone = new_learner(resolve({"backbone": {"name": "conv4", "train": train}}), CPU).backbone.train()
    assert backbone.frozen == frozen
    for n, block in enumerate(backbone.blocks):
        assert all(p.requires_grad == (n >= frozen) for p in block.parameters())
        assert all(module.training == (n >= frozen) for module in block.modules())
    assert not any(module.training for module in backbone.eval().blocks.modules())


def test_what_is_frozen_does_not_change_in_training():
    backbone = conv4(2)
    backbone.freeze()
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    optimizer = torch.optim.SGD([p for p in backbone.parameters() if p.requires_grad], lr=0.1)
    for step in range(2):
        images = torch.randn(4, 3, 32, 32, generator=generator("images", step))
        backbone.train()(images).square().mean().backward()
        optimizer.step()
    for name, tensor in backbone.state_dict().items():
        assert torch.equal(tensor, before[name]) == name.startswith(("blocks.0.", "blocks.1.")), name
