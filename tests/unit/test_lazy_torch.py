"""What is taken from `lazy_torch` is torch's own, from the first use on and not before."""

import copy
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

from episodica import lazy_torch
from episodica.learners.protonet import ProtoNet
from episodica.models.conv4 import Conv4
from episodica.models.random_layers import Dropout
from episodica.rng import seeded

FRESH = """
import sys
from dataclasses import dataclass
from episodica.lazy_torch import F, Module, Tensor, nn, torch

@dataclass(eq=False)
class Scale(Module):
    factor: float
    def forward(self, x: Tensor | None) -> Tensor: return self.factor * x

class Twice(Scale): ...

assert "torch" not in sys.modules
assert not hasattr(Twice, "state_dict")
twice = Twice(2.0)
assert type(twice) is Twice and "torch" in sys.modules
assert isinstance(twice, sys.modules["torch"].nn.Module) and issubclass(Scale, nn.Module)
assert twice(torch.ones(2)).tolist() == [2, 2] and twice.train().training
"""


def protonet() -> ProtoNet:
    with seeded("lazy"):
        return ProtoNet(backbone=Conv4())


def test_a_class_is_a_module_from_its_first_instance_on():
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_are_those_of_torch():
    assert lazy_torch.torch.cat is torch.cat
    assert lazy_torch.nn.Linear is nn.Linear
    assert lazy_torch.F.relu is nn.functional.relu
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(lazy_torch.torch, "no_such_name")  # noqa: B009


def test_a_change_of_torch_is_seen(monkeypatch):
    monkeypatch.setattr(torch, "rand", "changed")
    assert lazy_torch.torch.rand == "changed"


def test_components_and_layers_are_modules_with_their_own_order_of_resolution():
    learner = protonet()
    assert isinstance(learner, nn.Module)
    assert isinstance(Dropout(0.5), nn.Module)
    order = [base.__name__ for base in type(learner).__mro__]
    assert order == ["ProtoNet", "Learner", "Module", "Module", "Component", "object"]
    assert dict(learner.named_children()) == {"backbone": learner.backbone}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda built: pickle.loads(pickle.dumps(built))])
def test_components_can_be_copied_and_sent(copied):
    learner = protonet()
    other = copied(learner)
    assert type(other) is ProtoNet
    assert other.backbone is not learner.backbone
    for name, value in learner.state_dict().items():
        assert torch.equal(other.state_dict()[name], value)
