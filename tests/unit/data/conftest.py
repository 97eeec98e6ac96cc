"""Every test has a cache of its own, and no data sets of the machine's owner."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EPISODICA_DATA", raising=False)
    return tmp_path / "cache"
