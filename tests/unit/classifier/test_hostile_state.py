"""States whose files are whole and whose content is a lie: each is refused in one sentence."""

from typing import Any

import pytest
import torch
from torch import Tensor

from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import ModelState, StoredClass
from episodica.classifier.trained_state import TrainedState
from episodica.errors import InputError


def replaced(state: ModelState, weight: Any = None, prototypes: Tensor | None = None, **config: Any) -> TrainedState:
    weights = dict(state.weights)
    name = next(name for name, tensor in weights.items() if tensor.ndim == 4)
    if weight is not None:
        weights[name] = weight(weights[name])
    classes = () if prototypes is None else (StoredClass(name="a", kind="remembered", images=()),)
    record = state.record.model_copy(update={"classes": classes, "config": {**state.record.config, **config}})
    return TrainedState("", record, weights, torch.empty(0) if prototypes is None else prototypes)


HOSTILE: dict[str, dict[str, Any]] = {
    "NaN": {"weight": lambda w: w * torch.nan},
    "infinite": {"weight": lambda w: w / 0},
    "another shape": {"weight": lambda w: w.flatten()},
    "another width": {"weight": lambda w: w[:5]},
    "no numbers": {"weight": lambda w: w[:0]},
    "NaN classes": {"prototypes": torch.full((1, 64), torch.nan)},
    "classes of another width": {"prototypes": torch.zeros(1, 3)},
    "images without end": {"augment": {"size": 1_000_000}},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_state_that_does_not_fit_together(blank: ModelFolder, case: str) -> None:
    with pytest.raises(InputError, match=r"(does|do) not fit together") as caught:
        replaced(blank.state(), **HOSTILE[case]).recogniser()
    assert "\n" not in str(caught.value)


def test_a_state_with_missing_weights(blank: ModelFolder) -> None:
    state = blank.state()
    assert isinstance(state, TrainedState)
    weights = {name: tensor for name, tensor in state.weights.items() if tensor.ndim != 4}
    with pytest.raises(InputError, match=r"(does|do) not fit together"):
        TrainedState("", state.record, weights, state.prototypes).recogniser()


def test_more_prototypes_than_classes(blank: ModelFolder) -> None:
    with pytest.raises(ValueError, match="2 prototypes of 0 classes"):
        TrainedState("", blank.state().record, {}, torch.zeros(2, 3))
