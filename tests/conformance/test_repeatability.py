"""The same config gives the same bits, another seed gives others, and nobody else's random state is used."""

import random
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from conformance.conftest import Observation
from conformance.tiny import every_pair, losses, outcome, tiny, weights
from episodica.config import RunConfig
from episodica.data.store import ImageStore
from episodica.engine.run import run_one
from episodica.errors import Interrupted
from episodica.learners.protonet import ProtoNet

Run = Callable[[RunConfig], Path]


@every_pair
def test_the_same_seed_gives_the_same_bits(
    method: str, learner: str, plain: Run, observed: Callable[[str, str], Observation]
) -> None:
    assert outcome(plain(tiny(method=method, learner=learner))) == outcome(observed(method, learner).folder)


@every_pair
def test_another_seed_trains_differently_on_the_same_split(method: str, learner: str, plain: Run) -> None:
    one, other = (plain(tiny({"seed": seed}, method=method, learner=learner)) for seed in (0, 1))
    assert losses(one, 1)[0] != losses(other, 1)[0]
    assert outcome(one)["split"] == outcome(other)["split"]
    assert not set(weights(one).values()) & set(weights(other).values())


@every_pair
def test_the_seed_decides_the_draws(method: str, learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[int]] = []
    read = ImageStore.read
    monkeypatch.setattr(ImageStore, "read", lambda store, rows: batches.append(rows.tolist()) or read(store, rows))
    firsts = []
    for seed in (0, 1):
        batches.clear()
        with pytest.raises(Interrupted):
            run_one(tiny({"seed": seed}, method=method, learner=learner), tmp_path, lambda event: None, lambda: True)
        firsts.append(list(batches))
    assert firsts[0] != firsts[1]


@every_pair
def test_a_run_leaves_global_state_alone(method: str, learner: str, tmp_path: Path) -> None:
    before = _global_state()
    run_one(tiny(method=method, learner=learner), tmp_path, lambda event: None)
    assert _global_state() == before


def _global_state() -> dict[str, object]:
    return {
        "random": random.getstate(),
        "numpy": str(np.random.get_state()),  # noqa: NPY002
        "torch": torch.get_rng_state().tolist(),
        "gradients": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "interrupts": signal.getsignal(signal.SIGINT),
    }


def test_the_host_gets_its_number_of_threads_back(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        run_one(tiny({"threads": 1}), tmp_path, lambda event: None)
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("overrides", [{"eval.seed": 1}, {"eval.shots": [1, 2]}, {"eval.episodes": 30}])
def test_evaluation_never_influences_training(overrides: dict[str, object], plain: Run) -> None:
    assert weights(plain(tiny(overrides))) == weights(plain(tiny()))
    assert outcome(plain(tiny(overrides)))["episodes"] != outcome(plain(tiny()))["episodes"]


def test_all_methods_and_seeds_answer_the_same_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluated that looks at the mean colour, whatever it was taught, always gets the same marks."""
    embed = ProtoNet.embed
    monkeypatch.setattr(ProtoNet, "embed", lambda self, x: embed(self, x) if self.training else x.mean((2, 3)))
    marks = []
    for config in (tiny(method="ft"), tiny({"seed": 1, "train.lr": 0.1}, method="joint")):
        run_one(config, tmp_path, lambda event: None)
        marks.append(outcome(tmp_path / config.run_id)["results"]["sessions"][-1])
    assert marks[0]["meta_test"] == marks[1]["meta_test"]
    assert marks[0]["per_task"] == marks[1]["per_task"]
