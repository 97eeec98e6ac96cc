"""The Python blocks of README and docs/python.md run as they stand; those tagged `python no-test` are not meant to."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [(ROOT / page).read_text() for page in ("README.md", "docs/python.md")]
BLOCKS = [b for page in PAGES for b in re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(block: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", block]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # more threads would fight with those of other tests
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
