"""The notebooks run as they stand, and show what they print today."""

import os
import subprocess
import sys
from pathlib import Path

from docs.pages import ROOT


def test_the_notebooks_run_and_show_what_they_print(tmp_path: Path) -> None:
    """In a process of its own: the client of Jupyter leaves sockets open, which is a warning, and an error here."""
    command = [sys.executable, str(ROOT / "docs" / "site" / "run_notebooks.py"), "--check"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "IPYTHONDIR": str(tmp_path), "MPLCONFIGDIR": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
