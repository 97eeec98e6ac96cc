"""What people install: a source distribution, the wheel that is made of it, and their use outside the repository."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest
import yaml

import episodica

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

USE = """
import sys
from pathlib import Path
import episodica
from episodica.errors import not_installed

assert Path(episodica.__file__).is_relative_to(sys.prefix), episodica.__file__
assert "torch" not in sys.modules
(result,) = episodica.run(
    "quickstart",
    {
        "method.name": "ft", "data.classes": 12, "data.per_class": 12, "data.size": 16, "shape.queries": 3,
        "stream.tasks": 1, "stream.unseen_classes": 5, "stream.test_per_class": 4, "train.epochs": 1,
        "train.episodes": 1, "eval.episodes": 4, "eval.queries": 2, "kernels": "torch",
    },
)
print(result.status)
print(not_installed("a report needs jinja2", "report"))
"""


class Built(NamedTuple):
    sdist: Path
    wheel: Path


def _run(*command: object, cwd: Path, **environment: str) -> str:
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it may name the source
    ran = subprocess.run(
        [*map(str, command)], cwd=cwd, env=outside | environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The wheel is built from the unpacked source distribution, so that it needs nothing else."""
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", out, cwd=ROOT)
    (sdist,) = out.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(out, filter="data")
    source = out / sdist.name.removesuffix(".tar.gz")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=source)
    (wheel,) = out.glob("*.whl")
    return Built(sdist, wheel)


def test_the_wheel_has_every_file_of_the_package(built: Built) -> None:
    package = ROOT / "src" / "episodica"
    ours = {str(path.relative_to(ROOT / "src")) for path in package.rglob("*") if path.is_file()}
    with ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
        about = f"episodica-{episodica.__version__}.dist-info"
        metadata = wheel.read(f"{about}/METADATA").decode()
    assert {name for name in names if name.startswith("episodica/")} == {n for n in ours if "__pycache__" not in n}
    assert {"episodica/py.typed", "episodica/__init__.pyi", f"{about}/licenses/LICENSE"} <= names
    for suffix in (".yaml", ".html", ".cpp", ".js", ".css"):
        assert any(name.endswith(suffix) for name in names), suffix
    assert "License-Expression: Apache-2.0" in metadata
    assert "Project-URL" not in metadata


def test_the_wheel_has_a_bill_of_materials(built: Built) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    optional = {need for extra in extras if extra not in ("all", "dev", "docs") for need in extras[extra]}
    with ZipFile(built.wheel) as wheel:
        bill = json.loads(wheel.read(f"episodica-{episodica.__version__}.dist-info/sboms/episodica.cdx.json"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    ours = bill["metadata"]["component"]
    assert (ours["name"], ours["version"]) == ("episodica", episodica.__version__)
    found = {(part["name"].replace("_", "-"), part["scope"]) for part in bill["components"]}
    wanted = {(_name(need), "required") for need in project["dependencies"]}
    assert found == wanted | {(_name(need), "optional") for need in optional}
    pins = (ROOT / "constraints.txt").read_text().lower().replace("_", "-").split()
    for part in bill["components"]:
        assert f"{part['name']}=={part['version']}" in pins
        assert part["purl"] == part["bom-ref"] == f"pkg:pypi/{part['name']}@{part['version']}"
    (needs,) = bill["dependencies"]
    assert needs == {"ref": ours["bom-ref"], "dependsOn": [part["bom-ref"] for part in bill["components"]]}


def _name(requirement: str) -> str:
    return re.split(r"[<>=\[;]", requirement)[0].replace("_", "-").lower()


def test_an_installed_package_works_outside_the_repository(built: Built, tmp_path: Path) -> None:
    """The environment is fresh but for the packages of this one, which lie behind its own."""
    environment = tmp_path / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    (packages,) = environment.glob("lib/*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", built.wheel,
        cwd=tmp_path,
    )  # fmt: skip
    said = _run(environment / "bin" / "episodica", "--version", cwd=tmp_path)
    assert said.strip() == episodica.__version__
    said = _run(python, "-c", USE, cwd=tmp_path, EPISODICA_CACHE=str(tmp_path / "cache"), OMP_NUM_THREADS="1")
    assert said.splitlines() == ["finished", "a report needs jinja2: say pip install 'episodica[report]'"]


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (episodica.__version__, "Apache-2.0")
    (paper,) = citation["references"]
    assert paper["title"].startswith("Incremental Meta-Learning via Episodic Replay Distillation")
    assert [author["family-names"] for author in paper["authors"]][0::5] == ["Wang", "Weijer"]
