"""Writes docs/licences.md: the licence of every package that constraints.txt pins, as the installed ones say it.

python packaging/licences.py        # or: make licences
"""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
UNKNOWN = "unknown"
LONGEST = 40  # characters: where the field has more, it is the text of a licence
IN_TEXT = {"Apache License": "Apache-2.0", "MIT License": "MIT"}  # how the texts of some licences begin
NOT_INSTALLED = {"ninja": "Apache-2.0", "tzdata": "Apache-2.0"}  # needed on some systems only
SPELT = {  # as SPDX has it, where it says which
    "Apache 2.0": "Apache-2.0", "Apache 2.0 License": "Apache-2.0", "MIT License": "MIT", "ISC license": "ISC",
    "ISC License": "ISC", "ISC License (ISCL)": "ISC", "BSD 3-Clause License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause", "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}  # fmt: skip
HEAD = """# Licences of what episodica needs

Every package that the set-up commands may install, with the version that was tested and the licence that its metadata
names, as exactly as it does. `make licences` writes this page. episodica itself is under Apache-2.0.

| package | version | licence |
|---|---|---|
"""


def pins() -> dict[str, str]:
    """What constraints.txt pins: names and versions."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def same_name(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(name: str) -> str:
    """By the expression, else the field, else the classifier, else the text that comes with the package."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return NOT_INSTALLED.get(name, UNKNOWN)
    said = found.metadata
    field = "".join(said.get_all("License") or []).strip()
    expressions = said.get_all("License-Expression") or []
    classifiers = [
        line.rpartition(" :: ")[2] for line in said.get_all("Classifier") or [] if line.startswith("License")
    ]
    fields = [field] if field not in ("", "UNKNOWN") and "\n" not in field and len(field) <= LONGEST else []
    ways = [*expressions, *fields, *classifiers, _from_text(found)]
    first = next((way for way in ways if way), UNKNOWN)
    return SPELT.get(first, first)


def _from_text(found: Distribution) -> str | None:
    for file in found.files or []:
        if file.name.startswith("LICENSE"):
            text = file.read_text()[:200]
            return next((name for start, name in IN_TEXT.items() if start in text), None)
    return None


def page() -> str:
    rows = sorted(pins().items(), key=lambda row: row[0].lower())
    return HEAD + "".join(f"| {name} | {version} | {licence(name)} |\n" for name, version in rows)


if __name__ == "__main__":
    PAGE.write_text(page())
