"""The fused kernels and plain torch train alike, and the records say which of them it was."""

import json
from pathlib import Path

import pytest

from conformance.tiny import losses, tiny
from episodica.engine.run import run_one

pytestmark = pytest.mark.usefixtures("compiled")


def test_both_begin_with_the_same_losses(tmp_path: Path) -> None:
    folders = {}
    for kernels in ("torch", "fused"):
        config = tiny({"kernels": kernels, "train.lr": 1e-5})
        run_one(config, tmp_path / kernels, lambda event: None)
        folders[kernels] = tmp_path / kernels / config.run_id
        assert json.loads((folders[kernels] / "env.json").read_text())["kernel_path"] == kernels
    for session in (1, 2):
        (plain, *_), (fused, *_) = (losses(folder, session) for folder in folders.values())
        assert fused == pytest.approx(plain, rel=2e-5 if session == 1 else 3e-4)
