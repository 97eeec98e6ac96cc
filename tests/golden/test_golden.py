"""The numbers of one tiny run of every method with every learner, so that a refactoring can show that it is one.

A change of behaviour writes new numbers, and says why: `EPISODICA_GOLDEN=write pytest tests/golden`. They must be met
exactly by the processor and the torch that wrote them, and nearly by others.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from conformance.tiny import RUNNABLE, digest, every_pair, losses, tiny
from episodica.data.cache import Arrays, OnProgress
from episodica.data.dataset import Dataset, silent
from episodica.engine.run import run_one

GOLDEN = Path(__file__).with_name("golden.json")
WRITE = os.environ.get("EPISODICA_GOLDEN") == "write"

# Other processors add up in another order, which Adam magnifies; at this rate it stays below 1e-4 in a whole run.
LR = 1e-5
NEAR_LOSS, SAME_LOSS = 3e-4, 1e-7
NEAR_ACCURACY = 5 / (3 * 15 * 20)  # in queries of the smallest evaluation


@pytest.fixture
def tiles(scratch_registry: None) -> None:
    class Tiles(Dataset, name="tiles"):
        """Coloured tiles of each class under noise, by integer arithmetic alone."""

        classes: int = 12
        per_class: int = 30

        native_size: ClassVar[int] = 16

        def test_per_class(self, counts: np.ndarray) -> int:
            return 8

        def unseen_classes(self, classes: int) -> int:
            return 4

        def load(self, on_progress: OnProgress = silent) -> Arrays:
            s = self.size or self.native_size
            c, i, y, x, channel = np.indices((self.classes, self.per_class, s, s, 3), dtype=np.uint32)
            pattern = _hash(((c * 4 + y // 4) * 4 + x // 4) * 3 + channel)
            noise = _hash((((c * self.per_class + i) * s + y) * s + x) * 3 + channel + 977)
            images = ((pattern + 3 * noise) // 4).astype(np.uint8).reshape(-1, s, s, 3)
            labels = np.repeat(np.arange(self.classes), self.per_class)
            return Arrays(images, labels, tuple(map(str, range(self.classes))), "tiles")


def _hash(n: np.ndarray) -> np.ndarray:
    """A byte that looks random (Wang's mixing of 32 bits)."""
    n = (n ^ np.uint32(61)) ^ (n >> np.uint32(16))
    n = n * np.uint32(9)
    n = (n ^ (n >> np.uint32(4))) * np.uint32(0x27D4EB2D)
    return (n ^ (n >> np.uint32(15))) & np.uint32(255)


@every_pair
def test_numbers_are_those_written_down(method: str, learner: str, tiles: None, tmp_path: Path) -> None:
    config = tiny({"train.epochs": 3, "train.lr": LR, "shape.shots": 2}, method=method, learner=learner, data="tiles")
    run_one(config, tmp_path, lambda event: None)
    found = _numbers(tmp_path / config.run_id)
    if WRITE:
        known = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
        GOLDEN.write_text(json.dumps(known | {f"{method}-{learner}": found}, indent=1, sort_keys=True) + "\n")
    expected = json.loads(GOLDEN.read_text()).get(f"{method}-{learner}")
    if expected is None:
        pytest.skip("no numbers are written down for it yet: EPISODICA_GOLDEN=write pytest tests/golden")
    tolerance = SAME_LOSS if found["written_by"] == expected["written_by"] else NEAR_LOSS
    assert found["first"] == _near(expected["first"], tolerance)
    assert found["last"] == _near(expected["last"], tolerance)
    assert found["accuracies"] == {k: pytest.approx(v, abs=NEAR_ACCURACY) for k, v in expected["accuracies"].items()}


def test_numbers_that_are_written_down_are_of_pairs_that_still_run() -> None:
    assert set(json.loads(GOLDEN.read_text())) <= {f"{method}-{learner}" for method, learner in RUNNABLE}


def _near(terms: Mapping[str, float], tolerance: float) -> dict[str, Any]:
    return {name: pytest.approx(value, rel=tolerance) for name, value in terms.items()}


def _instructions() -> str:
    """A digest of what the processor can do: virtual ones of the same name may differ."""
    info = Path("/proc/cpuinfo")
    flags = [line for line in info.read_text().splitlines() if line.startswith("flags")] if info.exists() else []
    return digest(flags[0].encode()) if flags else ""


def _numbers(folder: Path) -> dict[str, Any]:
    sessions = json.loads((folder / "results.json").read_text())["sessions"]
    logs = [losses(folder, session + 1) for session in range(len(sessions))]
    last, env = sessions[-1], json.loads((folder / "env.json").read_text())
    return {
        "written_by": [env["machine"]["processor"], _instructions(), env["versions"]["torch"]],
        "first": logs[0][0],
        "last": logs[-1][-1],
        "accuracies": {"meta_test": last["meta_test"]["mean"]} | {str(t["task"]): t["mean"] for t in last["per_task"]},
    }
