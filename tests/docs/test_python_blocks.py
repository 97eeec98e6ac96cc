"""The Python blocks of the pages: all compile and import what there is, and some pages run as they stand."""

import ast
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.pages import PAGES, ROOT, blocks, name_of

RUN = ("README.md", "docs/python.md")
EACH = """
import pathlib, re, sys
for page in sys.argv[1:]:
    found = re.findall(r"^```python\\n(.*?)^```$", pathlib.Path(page).read_text(), flags=re.DOTALL | re.MULTILINE)
    for number, block in enumerate(found):
        exec(compile(block, f"{page}, block {number}", "exec"), {"__name__": "__main__"})
    print(page, len(found), "blocks")
"""


def test_the_blocks_of_these_pages_run(tmp_path: Path) -> None:
    """In one process, since torch takes longer to load than most blocks to run; each with names of its own."""
    command = [sys.executable, "-W", "error", "-c", EACH, *(str(ROOT / page) for page in RUN)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # more threads would fight with those of other tests
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    for page in RUN:
        assert re.search(rf"{page} [1-9]\d* blocks$", ran.stdout, flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_the_blocks_of_a_page_import_is_there(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            for node in ast.walk(ast.parse(block.text)):
                _check_import(node)


def _check_import(node: ast.AST) -> None:
    if isinstance(node, ast.Import):
        assert all(find_spec(name.name) for name in node.names), ast.unparse(node)
    if isinstance(node, ast.ImportFrom) and node.module:
        module = import_module(node.module)
        assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)
