"""Modules that know nothing of episodica, named by their path; and the example of the documentation."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from episodica.config import resolve
from episodica.engine.experiment import new_learner
from episodica.errors import InputError

PAGE = Path(__file__).parents[3] / "docs/backbones/own.md"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scratch_registry: None) -> Iterator[Path]:
    """An empty importable module `mine`."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "mine.py"
    sys.modules.pop("mine", None)


VECTORS = """
from torch import nn
class Net(nn.Sequential):
    input_size = 24
    mean, std = (0.5, 0.5, 0.5), (0.2, 0.2, 0.2)
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
class Maps(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 5, 3, stride=2))
class Odd(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(0))
number = 3
"""


def test_a_module_that_gives_vectors_says_what_it_wants(module):
    module.write_text(VECTORS)
    config = resolve({"backbone": {"name": "mine:Net"}})
    assert (config.image_size, config.augment.mean, config.augment.std) == (24, (0.5,) * 3, (0.2,) * 3)
    learner = new_learner(config, torch.device("cpu")).eval()
    images = torch.zeros(2, 3, 24, 24)
    net = next(m for m in learner.modules() if type(m).__name__ == "Net" and isinstance(m, nn.Sequential))
    assert torch.equal(learner.embed(images), net(images))
    assert learner.backbone.out_shape(24) == (4,)
    assert resolve(config.tree()) == config


def test_maps_are_averaged(module):
    module.write_text(VECTORS)
    config = resolve({"backbone": {"name": "mine:Maps", "train": "none"}, "data": {"size": 16}})
    backbone = new_learner(config, torch.device("cpu")).backbone
    images = torch.zeros(2, 3, 16, 16)
    assert backbone.last_maps(images).shape[1:] == backbone.map_shape(16) == (5, 7, 7)
    assert torch.equal(backbone(images), backbone.last_maps(images).mean((2, 3)))
    assert not any(p.requires_grad for p in backbone.parameters())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:Net", "No module named 'nowhere'; write package.module:Class"),
        ("mine:Nothing", "has no attribute 'Nothing'; write package.module:Class"),
        ("mine:number", "it is no class that inherits torch.nn.Module"),
        ("mine:Odd", "Odd gives [24576], neither [M, D] nor [M, D, H, W]"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(name, message, module):
    module.write_text(VECTORS)
    with pytest.raises(InputError, match=re.escape(message)):
        resolve({"backbone": {"name": name}, "data": {"size": 64}})


def test_the_documented_example_runs(module):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    module.write_text(example)
    config = resolve({"backbone": {"name": "mine:Small"}})
    assert new_learner(config, torch.device("cpu")).eval().embed(torch.zeros(1, 3, 64, 64)).shape == (1, 64)
