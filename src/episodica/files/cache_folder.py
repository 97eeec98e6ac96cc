"""Where episodica keeps what it can compute or fetch again: decoded images, compiled kernels, copies of addresses."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`EPISODICA_CACHE`, or the user's cache folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("EPISODICA_CACHE") or base / "episodica")
