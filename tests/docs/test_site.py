"""The site builds without a warning (links, anchors, the menu), is complete by itself and can be searched."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from docs.pages import ROOT

FETCHED = {
    ("link", "href"),
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("object", "data"),
}


class _Fetched(HTMLParser):
    """What a browser fetches for a page, and what in it may run."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if value and (tag, name) in FETCHED]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built strictly: a warning ends it. Of links and anchors every one is followed."""
    place = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.chdir(ROOT)
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(place))
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
    return place


def test_the_site_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        for address in _Fetched(page).addresses:
            if not address.startswith("data:image/"):
                assert not re.match(r"\w+:|//", address), f"{page.name}: {address}"
                folder = (
                    site if address.startswith("/") else page.parent
                )  # the page of a missing page has whole addresses
                assert (folder / address.lstrip("/").partition("?")[0]).exists(), f"{page.name}: {address}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", sheet.read_text()), sheet.name


def test_the_site_can_be_searched_for_what_is_in_it(site: Path) -> None:
    found = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    text = {part["location"].partition("#")[0]: part["text"] for part in found}
    for page in ("index.html", "learn.html", "methods/erd.html", "reference/config.html", "reference/python.html"):
        assert page in text
    assert any("method.lambda_m" in part["text"] and part["location"] == "reference/methods.html#erd" for part in found)


def test_the_reference_has_every_public_name_verb_and_component(site: Path) -> None:
    import episodica
    from episodica.cli import VERBS
    from episodica.cli.catalogue import KINDS
    from episodica.registry import components

    def headings(page: str) -> set[str]:
        return set(re.findall(r'<h[23] id="([^"]+)"', (site / "reference" / f"{page}.html").read_text()))

    assert {name.lower() for name in episodica.__all__} <= headings("python")
    assert {f"episodica-{verb}" for verb in VERBS} <= headings("command")
    for page, (kind, _) in KINDS.items():
        assert set(components(kind)) <= headings(page)
