"""What is said of the package elsewhere is what pyproject.toml says: the conda recipe, the page of how to install."""

import re
import tomllib

import yaml

import episodica
from docs.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA_NAMES = {"torch": "pytorch"}  # packages that have another name there


def _recipe() -> dict:
    text = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text()
    context = yaml.safe_load(text)["context"]
    for name, value in context.items():
        text = text.replace(f"${{{{ {name} }}}}", value)
    return yaml.safe_load(text)


def test_it_is_this_package() -> None:
    recipe = _recipe()
    assert recipe["package"] == {"name": PROJECT["name"], "version": episodica.__version__}
    assert recipe["about"] == {
        "summary": PROJECT["description"],
        "license": PROJECT["license"],
        "license_file": PROJECT["license-files"][0],
    }
    folder = ROOT / "packaging" / "conda-forge" / recipe["source"]["path"]
    assert (folder / "pyproject.toml").samefile(ROOT / "pyproject.toml")


def test_it_has_the_same_dependencies_and_the_same_command() -> None:
    recipe = _recipe()
    wanted = {f"python {PROJECT['requires-python']}"}
    for dependency in PROJECT["dependencies"]:
        name, least = dependency.split(">=")
        wanted.add(f"{CONDA_NAMES.get(name, name)} >={least}")
    assert set(recipe["requirements"]["run"]) == wanted
    entry_points = recipe["build"]["python"]["entry_points"]
    assert entry_points == [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]


def test_the_image_has_all_that_the_wheel_is_built_from() -> None:
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
    wanted = {
        hook["custom"]["path"],
        "constraints.txt",
        "pyproject.toml",
        "src",
        PROJECT["readme"],
        *PROJECT["license-files"],
    }
    lines = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert wanted <= {name for line in lines for name in line.split()}
    assert {f"!{name}" for name in wanted} <= set((ROOT / ".dockerignore").read_text().splitlines())


def test_the_page_of_how_to_install_names_every_extra() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    table = page[page.index("| extra |") :].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE)) == set(PROJECT["optional-dependencies"]) - {
        "dev",
        "docs",
    }
