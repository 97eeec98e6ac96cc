"""What episodica needs is pinned, with hashes, and under a licence that is known."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement

from docs.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_FOR_USERS = ("all", "dev", "docs")  # extras
ELSEWHERE = {"torch"}  # has builds of one version with hashes of their own: docs/security.md
REMEDY = "say `make lock licences`"


def same_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {same_name(line.split("==")[0]): line.split("==")[1] for line in lines if "==" in line and line[0] != "#"}


def needed() -> Iterator[str]:
    """By whoever uses episodica on this system, with any extra: names, and those of what these need in turn."""
    extras = PROJECT["optional-dependencies"]
    wanted = [
        *PROJECT["dependencies"],
        *(need for name in extras if name not in NOT_FOR_USERS for need in extras[name]),
    ]
    unseen, seen = [(Requirement(need), "") for need in wanted], set()
    while unseen:
        requirement, extra = unseen.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        for asked in ("", *requirement.extras):
            if (requirement.name, asked) not in seen:
                seen.add((requirement.name, asked))
                unseen += [(Requirement(text), asked) for text in _needs_of(requirement.name)]
        yield same_name(requirement.name)


def _needs_of(name: str) -> list[str]:
    """As the pinned version says, where it is the one that is installed. Of torch, it depends on the build: one for
    graphics cards needs the libraries of their maker."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return []
    return found.requires or [] if found.version == pins().get(same_name(name)) and name not in ELSEWHERE else []


def test_every_pin_has_hashes_and_nothing_tells_where_they_come_from() -> None:
    text = (ROOT / "requirements-dev.lock").read_text()
    assert "/" not in re.sub(r"^#.*", "", text, flags=re.MULTILINE)
    found = re.findall(r"^(\S+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, flags=re.MULTILINE)
    locked = {same_name(name): version for name, version, _ in found}
    assert locked == {name: version for name, version in pins().items() if name not in ELSEWHERE}, REMEDY


def test_every_licence_is_known() -> None:
    page = (ROOT / "docs" / "licences.md").read_text()
    rows = re.findall(r"^\| (\S+) \| (\S+) \| (.+) \|$", page, flags=re.MULTILINE)[1:]
    assert {same_name(name): version for name, version, _ in rows} == pins(), REMEDY
    assert [name for name, _, licence in rows if licence == "unknown"] == []
    assert set(needed()) - {same_name(name) for name, _, _ in rows} == set(), "missing in constraints.txt"
