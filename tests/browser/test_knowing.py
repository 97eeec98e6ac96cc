"""How good the model is, in charts; learning in depth; taking a model along and bringing it in."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from browser.teaching import go, toast

Open = Callable[..., Page]


def test_charts_say_how_good_it_is(open_page: Open, url: str) -> None:
    page = open_page(f"{url}#/quality")
    expect(page.locator(".big")).to_contain_text("%")
    cells = page.locator(".matrix tbody td")
    expect(cells).to_have_count(36)
    assert sum(int(text or 0) for text in cells.all_inner_texts()) == 36
    assert (page.locator(".curve").get_attribute("aria-label") or "").startswith("A curve from")
    expect(page.locator(".plane image")).to_have_count(36)
    page.locator(".plane").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".preview a")).to_be_visible()
    page.get_by_role("button", name="fish").click()
    expect(page.locator(".plane .faint image")).to_have_count(30)
    page.locator("summary").last.click()
    expect(page.locator("details[open] tbody tr")).to_have_count(6)


def test_a_model_is_taken_along_and_brought_in(open_page: Open, url: str, new_url: str, tmp_path: Path) -> None:
    page = open_page(f"{url}#/model")
    with page.expect_download() as taken:
        page.get_by_role("link", name="The folder (ZIP)").click()
    taken.value.save_as(tmp_path / "things.zip")
    other = open_page(f"{new_url}#/model", pardoned="422")
    (tmp_path / "bad.zip").write_bytes(b"no archive")
    other.locator("input[type=file]").set_input_files(tmp_path / "bad.zip")
    expect(other.locator(".card .error")).to_be_visible()
    other.locator("input[type=file]").set_input_files(tmp_path / "things.zip")
    expect(toast(other)).to_contain_text("brought in")
    go(other, "teach")
    expect(other.locator(".class")).to_have_count(6)


def test_it_learns_in_depth_and_can_be_stopped(open_page: Open, url: str) -> None:
    page = open_page(f"{url}#/model")
    page.get_by_role("button", name="Learn in depth").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Learn in depth")).to_be_visible()
