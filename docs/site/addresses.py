"""Where pages of the repository are in the site: sources link to each other as files, wherever they are read."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_SOURCES = {address: source for source, address in ROOT_PAGES.items()}
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)#\s]+)")


def source_of(address: str) -> str:
    """The file of the repository behind a page of the site."""
    return _SOURCES.get(address, f"docs/{address}")


def address_of(source: str) -> str:
    """The page of the site that shows a file of the repository; a notebook is shown as a page."""
    address = ROOT_PAGES.get(source, source.removeprefix("docs/"))
    return re.sub(r"\.ipynb$", ".md", address)


def for_site(markdown: str, address: str) -> str:
    """Links between files of the repository, as links between pages of the site."""
    source, folder = posixpath.dirname(source_of(address)), posixpath.dirname(address)

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(source, link[1]))
        return posixpath.relpath(address_of(target), folder or ".")

    return _LINK.sub(moved, markdown)
