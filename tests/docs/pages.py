"""The pages that people read, and the code in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    + [page for page in (ROOT / "docs").rglob("*.md") if "templates" not in page.parts]
)
_FENCED = re.compile(r"^```([\w-]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:^    .*\n)+", flags=re.MULTILINE)


class Block(NamedTuple):
    language: str  # empty where none is said
    text: str


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """Fenced ones, and those that are indented by four spaces."""
    text = page.read_text()
    fenced = [Block(found[1], found[2]) for found in _FENCED.finditer(text)]
    indented = _INDENTED.findall(_FENCED.sub("", text))
    return fenced + [Block("", re.sub(r"^    ", "", found, flags=re.MULTILINE)) for found in indented]


def inline_code(page: Path) -> list[str]:
    """Spans of code within text, also where they go on in the next line."""
    return [" ".join(found.split()) for found in re.findall(r"(?<!`)`([^`]+)`(?!`)", _FENCED.sub("", page.read_text()))]
