"""Runs whose backbone is frozen, in part or as a whole."""

import json
from pathlib import Path

import pytest
from torch import Tensor

from conformance.tiny import STEPS, losses, tiny
from episodica.engine.run import load_learner, run_one


@pytest.mark.parametrize("method", ["erd", "icarl"])
@pytest.mark.parametrize(("train", "frozen"), [(1, 3), ("none", 4)])
def test_frozen_blocks_are_the_same_after_every_session(method, train, frozen, tmp_path):
    config = tiny({"backbone.train": train}, method=method)
    run_one(config, tmp_path, lambda event: None)
    folder = tmp_path / config.run_id
    first, *_, last = (_backbone(folder, session) for session in range(3))
    for name, tensor in first.items():
        block = int(name.split(".")[1])
        assert (tensor == last[name]).all() or block >= frozen, name
    assert all((first[name] == last[name]).all() for name in first) == (train == "none")
    trained = train != "none" or method == "icarl"  # which has a classifier of its own
    assert len(losses(folder, 1)) == (STEPS if trained else 0)
    said = [json.loads(line).get("text", "") for line in (folder / "events.jsonl").read_text().splitlines()]
    assert sum("nothing to train" in text for text in said) == (not trained)


def _backbone(folder: Path, session: int) -> dict[str, Tensor]:
    """After a session, counted from 0."""
    return load_learner(folder, session + 1).backbone.state_dict()
