"""Every `file:name` in ARCHITECTURE.md exists, and so does every file and package that it names."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "episodica"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
WALKED = sorted(set(re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)))


def names_in(path: Path) -> set[str]:
    """Functions, classes and their methods, as `Class.method`."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{part.name}" for part in inner}
    return found


def test_there_are_walks() -> None:
    assert len(WALKED) > 20


@pytest.mark.parametrize(("file", "name"), WALKED)
def test_every_step_of_a_walk_exists(file: str, name: str) -> None:
    assert name in names_in(SOURCE / file)


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`([\w/]+\.(?:py|pyi|yaml))`", PAGE))))
def test_every_file_exists(file: str) -> None:
    """Below the package, or below the repository; NAME stands for any name."""
    assert (SOURCE / file).exists() or (ROOT / file).exists() or "NAME" in file


def test_every_package_has_a_row() -> None:
    rows = PAGE.split("\n## Packages\n")[1].split("\n## ")[0]
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert packages - set(re.findall(r"^\| `(\w+)/`", rows, re.MULTILINE)) == set()


@pytest.mark.parametrize("package", sorted(set(re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE)) - {"tests"}))
def test_every_module_that_a_row_names_exists(package: str) -> None:
    (row,) = re.findall(rf"^\| `{package}/` \| (.*) \|$", PAGE, re.MULTILINE)
    named = {name.rstrip("/") for name in re.findall(r"`([a-z_0-9]+/?)`", row)}
    there = {path.stem for path in (SOURCE / package).iterdir()}
    assert named - there == set()
