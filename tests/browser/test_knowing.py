"""How good the model is, in charts; learning in depth; taking a model along and bringing it in."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

Open = Callable[..., Page]


def test_charts_say_how_good_it_is(open_page: Open, url: str) -> None:
    page = open_page(f"{url}#/quality")
    expect(page.locator(".big")).to_contain_text("%")
    cells = page.locator(".matrix tbody td")
    expect(cells).to_have_count(25)
    assert sum(int(text or 0) for text in cells.all_inner_texts()) == 30
    assert (page.locator(".curve").get_attribute("aria-label") or "").startswith("A curve from")
    expect(page.locator(".plane image")).to_have_count(30)
    page.locator(".plane").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".preview a")).to_be_visible()
    page.get_by_role("button", name="fish").click()
    expect(page.locator(".plane .faint image")).to_have_count(24)
    page.locator("summary").last.click()
    expect(page.locator("details[open] tbody tr")).to_have_count(5)
