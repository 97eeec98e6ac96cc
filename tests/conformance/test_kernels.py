"""The fused kernels and plain torch train alike, and the records say which of them it was."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.tiny import losses, tiny
from episodica.engine.fused import kernels
from episodica.engine.run import run_one

pytestmark = pytest.mark.usefixtures("compiled")


def counted(name: str, run: Callable[..., Any], called: Counter[str]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        called[name] += 1
        return run(*given)

    return call


def test_both_begin_with_the_same_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders, called = {}, Counter[str]()
    for name in ("conv_pool_relu", "random_views"):
        monkeypatch.setattr(kernels, name, counted(name, getattr(kernels, name), called))
    for computing in ("torch", "fused"):
        config = tiny({"kernels": computing, "train.lr": 1e-5})
        assert not called
        run_one(config, tmp_path / computing, lambda event: None)
        folders[computing] = tmp_path / computing / config.run_id
        environment = json.loads((folders[computing] / "env.json").read_text())
        assert environment["kernel_path"] == computing
        assert ("kernels" in environment["versions"]) == (computing == "fused")
    assert set(called) == {"conv_pool_relu", "random_views"}
    for session in (1, 2):
        (plain, *_), (fused, *_) = (losses(folder, session) for folder in folders.values())
        assert fused == pytest.approx(plain, rel=2e-5 if session == 1 else 3e-4)
