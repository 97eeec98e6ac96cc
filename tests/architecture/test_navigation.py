"""Every page of docs/ is in the menu of the site, and every page of the menu is there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
MADE = ("reference/", "notebooks/", "index.md", "architecture.md", "contributing.md", "changelog.md")  # by docs/site


class _Loader(yaml.SafeLoader):
    """Tags of Python name functions of extensions, which the menu does not need."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)


def _pages(menu: Any) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    else:
        for part in menu.values() if isinstance(menu, dict) else menu:
            yield from _pages(part)


def test_every_page_is_in_the_menu() -> None:
    menu = set(_pages(yaml.load((ROOT / "mkdocs.yml").read_text(), _Loader)["nav"]))
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    written = {page for page in written if not page.startswith("results/templates/")}
    notebooks = {f"notebooks/{path.stem}.md" for path in (ROOT / "docs" / "notebooks").glob("*.ipynb")}
    assert not (written | notebooks) - menu, "add these pages to `nav` in mkdocs.yml"
    assert not {page for page in menu - written - notebooks if not page.startswith(MADE)}, "there is no such page"
