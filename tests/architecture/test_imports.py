"""Packages import each other in one direction, and ARCHITECTURE.md lists who imports whom."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from architecture.imports import package_imports

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"


def listed_imports() -> dict[str, set[str]]:
    """The table below the heading `Who imports whom`."""
    section = PAGE.read_text().split("\n## Who imports whom\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)
    return {package: set(re.findall(r"`(\w+)`", imported)) for package, imported in rows}


def test_no_cycle() -> None:
    try:
        TopologicalSorter(package_imports()).prepare()
    except CycleError as error:
        pytest.fail(f"packages import each other in a circle: {' <- '.join(error.args[1])}")


def test_every_import_is_listed_and_every_listed_import_exists() -> None:
    actual, listed = package_imports(), listed_imports()
    assert set(actual) - set(listed) == set(), "packages without a row in ARCHITECTURE.md"
    assert set(listed) - set(actual) == set(), "rows of ARCHITECTURE.md without a package"
    for package, imported in actual.items():
        assert imported - listed[package] == set(), f"imports of {package} that ARCHITECTURE.md does not list"
        assert listed[package] - imported == set(), f"imports that ARCHITECTURE.md lists and {package} does not have"


def test_imports_inside_functions_and_of_modules_count(tmp_path: Path) -> None:
    for package in ("low", "high"):
        (tmp_path / package).mkdir()
    (tmp_path / "low" / "store.py").write_text("def f():\n    from episodica.high import door\n")
    (tmp_path / "high" / "door.py").write_text("import episodica.low.store\nfrom episodica import low, run\n")
    (tmp_path / "__init__.py").write_text("from episodica.high.door import run\n")
    assert package_imports(tmp_path) == {"low": {"high"}, "high": {"low", "__init__"}, "__init__": {"high"}}
