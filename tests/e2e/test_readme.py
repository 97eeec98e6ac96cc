"""The Python blocks of README and docs/python.md run as they stand; those tagged `python no-test` are not meant to."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

EACH = """
import pathlib, re, sys
blocks = re.findall(r"^```python\\n(.*?)^```$", pathlib.Path(sys.argv[1]).read_text(), flags=re.DOTALL | re.MULTILINE)
for number, block in enumerate(blocks):
    exec(compile(block, f"block {number}", "exec"), {"__name__": "__main__"})
print(len(blocks), "blocks")
"""


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    """In one process, since torch takes longer to load than most blocks to run; each with names of its own."""
    command = [sys.executable, "-W", "error", "-c", EACH, str(ROOT / page)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # more threads would fight with those of other tests
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.search(r"^3 blocks$", ran.stdout, flags=re.MULTILINE)
