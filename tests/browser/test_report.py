"""The report in a browser: opened as a file, it needs nothing else."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from conformance.conftest import image_cache, plain
from conformance.tiny import tiny
from episodica.config import RunConfig
from episodica.report import write

__all__ = ["image_cache", "plain"]


@pytest.fixture(scope="module")
def report(plain: Callable[[RunConfig], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    for config in (tiny(), tiny(method="joint")):
        shutil.copytree(plain(config), place / "runs" / config.run_id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "ENDINGS", ("svg",))  # the other kinds are not in the page
        return write.write_report([place / "runs"], place / "report", images=True, maps=True)


def test_it_opens_from_a_file_without_any_request(page: Page, report: Path) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    grounds = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(report.as_uri())
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        ink = page.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
        assert ink == page.evaluate("getComputedStyle(document.body).color")
    assert len(grounds) == 2
    assert {url for url in asked if not url.startswith("data:")} == {report.as_uri()}
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(page: Page, report: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.get_by_role("heading", name="Accuracy", exact=True).is_visible()
    page.get_by_role("link", name="Runs").click()
    assert page.get_by_text("Every run and its state").is_visible()
