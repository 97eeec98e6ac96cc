"""A session that ends between what it began with and what it has learned."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.tiny import STEPS, tiny
from episodica.engine.run import load_learner, run_one
from episodica.errors import Interrupted

SHARE = 0.3


def silent(event: Any) -> None:
    """Nobody watches."""


def weights(folder: Path, session: int) -> dict[str, Tensor]:
    return load_learner(folder, session).state_dict()


def test_the_end_of_a_session_is_the_mean_of_the_old_and_the_new_weights(tmp_path: Path) -> None:
    """The second session of both runs is the same training, because the first one has nothing before it."""
    plain, mixed = tiny(), tiny({"train.consolidate": SHARE})
    for config in (plain, mixed):
        run_one(config, tmp_path, silent)
    begun, learned, found = (
        weights(tmp_path / config.run_id, session) for config, session in ((plain, 1), (plain, 2), (mixed, 2))
    )
    assert any(not torch.equal(begun[name], learned[name]) for name in begun)
    for name, tensor in found.items():
        if tensor.is_floating_point():
            expected = (1 - SHARE) * begun[name].double() + SHARE * learned[name].double()
            torch.testing.assert_close(tensor.double(), expected, rtol=1e-5, atol=1e-6)
        else:
            assert torch.equal(tensor, learned[name])
    first, second = (weights(tmp_path / config.run_id, 1) for config in (plain, mixed))
    assert all(torch.equal(first[name], second[name]) for name in first)


# It is asked after every step, and in evaluation for the unseen classes and for each task.
@pytest.mark.parametrize("stopped", [STEPS + 2 + 1, STEPS + 2 + STEPS, STEPS + 2 + STEPS + 1])
def test_a_run_that_was_stopped_consolidates_once(tmp_path: Path, stopped: int) -> None:
    """Within the second session, at its last step, or in its evaluation."""
    config, steps = tiny({"train.consolidate": SHARE}), count(1)
    run_one(config, tmp_path / "whole", silent)
    with pytest.raises(Interrupted):
        run_one(config, tmp_path / "parts", silent, stop=lambda: next(steps) == stopped)
    run_one(config, tmp_path / "parts", silent)
    whole, parts = (weights(tmp_path / name / config.run_id, 3) for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
