"""Models without training that are made in no time: an encoder that averages squares of pixels."""

from collections.abc import Iterator
from dataclasses import field

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from episodica import registry
from episodica.classifier.exact_plan import ExactCall
from episodica.classifier.exact_state import ExactState
from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import LearnOptions
from episodica.classifier.plan import plan_call
from episodica.config import resolution
from episodica.models.backbone import Backbone
from episodica.rng import generator

SIDE, COARSE = 32, 4
PER_CLASS = 6


@pytest.fixture(scope="module", autouse=True)
def coarse() -> Iterator[None]:
    """An encoder that averages squares of pixels: exact in float32, and made in no time. Forgotten afterwards."""
    known = registry.components("backbone")

    class Coarse(Backbone, name="coarse"):
        """Colours of a few squares."""

        train_: str = "none"  # type: ignore[assignment]
        blocks: nn.Sequential = field(init=False)

        def __post_init__(self) -> None:
            self.blocks = nn.Sequential(nn.Conv2d(3, 3, 1, bias=False))
            with torch.no_grad():
                self.blocks[0].weight.copy_(torch.eye(3)[:, :, None, None])  # type: ignore[union-attr]

        @property
        def input_size(self) -> int:
            return SIDE

        def map_shape(self, size: int) -> tuple[int, int, int]:
            return 3, size, size

        def out_shape(self, size: int) -> tuple[int, ...]:
            return (3 * COARSE**2,)

        def pool(self, maps: Tensor) -> Tensor:
            return nn.functional.adaptive_avg_pool2d(maps, COARSE).flatten(1)

    resolution._know_all_components.cache_clear()
    yield
    registry._components["backbone"] = dict(known)
    resolution._know_all_components.cache_clear()


def pictures(name: str, count: int = PER_CLASS) -> list[np.ndarray]:
    """Blots of colour that are alike within a class."""
    g = generator("pictures", name)
    base = torch.rand(3, COARSE, COARSE, generator=g)
    noise = torch.rand(count, 3, COARSE, COARSE, generator=g)
    blots = nn.functional.interpolate((0.6 * base + 0.4 * noise), size=(SIDE, SIDE)).mul(255).byte()
    return list(blots.permute(0, 2, 3, 1).contiguous().numpy())


def teach(folder: ModelFolder, classes: dict[str, list[np.ndarray]], **options) -> ExactState:
    overrides = {} if folder.exists else {"backbone.name": "coarse"}
    with folder.writing():
        call = plan_call(folder, classes, LearnOptions(overrides=overrides, **options))
        assert isinstance(call, ExactCall)
        state = learn(folder, call, lambda event: None)
    assert isinstance(state, ExactState)
    return state
