"""The page for everybody: keyboard, screen reader, phone, light and dark, another language, hostile names."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.teaching import TEXT, bring, findings, go, picture, pictures, teach_class
from episodica.classifier.model_folder import ModelFolder
from episodica.serve.app import guarded
from episodica.serve.pages import HERE
from episodica.web.guard import App

Open = Callable[..., Page]
FOCUSED = "() => document.activeElement.id"
STRINGS = """async () => {
  const { LANGUAGES } = await import('/pages/strings.js');
  const kind = (text) => (typeof text === 'function' ? `function of ${text.length}` : typeof text);
  return Object.fromEntries(Object.entries(LANGUAGES).map(([code, strings]) => [
    code, Object.fromEntries(Object.entries(strings).map(([key, text]) => [key, kind(text)]))]));
}"""


@pytest.mark.parametrize("wide", [1280, 390])
def test_nothing_is_in_the_way_of_anybody(open_page: Open, url: str, wide: int) -> None:
    """axe-core on every view, its colours in light and dark, and nothing is wider than the screen."""
    page = open_page(f"{url}#/teach", wide=wide, bypass_csp=True, pardoned="422")

    def check(where: str) -> None:
        page.emulate_media(color_scheme="light")
        assert findings(page) == [], where
        page.emulate_media(color_scheme="dark")
        assert findings(page, "color-contrast") == [], f"{where} in the dark"
        assert page.evaluate("document.documentElement.scrollWidth") <= wide, where

    bring(page, [picture("sun", 0), TEXT])
    expect(page.locator(".thumbs img")).to_have_count(1)
    check("teach")
    go(page, "ask")
    bring(page, [picture("apple", 9)])
    expect(page.locator(".verdict")).to_be_visible()
    check("one answer")
    bring(page, [*pictures("sun", range(3)), TEXT])
    expect(page.get_by_role("status").first).to_have_text("4 pictures recognised")
    check("many answers")
    page.locator(".answer").first.click()
    check("one of many")
    page.locator("dialog").get_by_role("button", name="Another class").click()
    check("choosing a class")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    for view, shows in (("unknown", ".group"), ("quality", ".plane"), ("history", ".changes"), ("model", ".facts")):
        go(page, view)
        page.wait_for_selector(shows)
        check(view)
    go(page, "class/apple")
    page.locator(".frame").first.click()
    check("a class")
    page.get_by_role("button", name="Forget").click()
    check("forgetting")


def test_the_keyboard_is_enough_and_targets_are_large(open_page: Open, url: str) -> None:
    page = open_page(f"{url}#/teach", wide=390)
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED) == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED) == "main"
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED).startswith("draft")
    for button in page.locator("button:visible:not(.out), .button:visible, #views a").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 36, button.inner_text()
    page.get_by_role("link", name="History").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_be_focused()
    expect(page.locator(".changes li")).to_have_count(6)
    page.keyboard.press("Control+z")
    expect(page.locator(".changes li")).to_have_count(7)
    expect(page.get_by_role("status").first).to_contain_text("undid a change of boat")


def test_it_speaks_the_language_of_the_browser_and_another_on_request(open_page: Open, url: str) -> None:
    page = open_page(f"{url}#/teach", locale="de-CH")
    expect(page.locator("h1")).to_have_text("Lehren")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.get_by_role("button", name="Einstellungen").click()
    page.get_by_label("Sprache").select_option("en")
    page.get_by_role("button", name="Fertig").click()
    expect(page.locator("h1")).to_have_text("Teach")
    page.reload()
    expect(page.locator("h1")).to_have_text("Teach")

    said = page.evaluate(STRINGS)
    assert said["en"] == said["de"]
    used = {key for file in HERE.glob("*.js") for key in re.findall(r"\bt\('(\w+)'", file.read_text())}
    assert used - {"key"} <= set(said["en"])
    found = " ".join(file.read_text() for file in HERE.glob("*.js") if not file.name.startswith("strings."))
    families = ("tab_", "view_", "did_", "order_", "export_")
    unused = {key for key in said["en"] if not key.startswith(families) and not re.search(rf"\b{key}\b", found)}
    assert unused == set()


def test_names_are_only_text_and_nothing_comes_from_elsewhere(open_page: Open, url: str, tmp_path: Path) -> None:
    asked: list[str] = []
    page = open_page(f"{url}#/ask", pardoned="status of 4")
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    name = "<img src=x onerror=document.title=1>"
    bring(page, [{**picture("apple", 7), "name": name + ".png"}])
    expect(page.locator(".verdict")).to_contain_text("apple")
    page.get_by_role("button", name="Another class").click()
    page.get_by_label("Find a class").fill(name)
    page.get_by_role("button", name="New class").click()
    expect(page.locator(".toast")).to_contain_text("angle brackets")
    folder = ModelFolder(tmp_path / "things")
    with folder.writing():
        page.locator(".score").first.click()
        expect(page.locator(".toast")).to_contain_text("being changed by another process")
    assert "episodica" in page.title()
    assert page.locator("img[src=x]").count() == 0
    page.goto(f"{url}docs")
    expect(page.locator("h3", has_text="POST /import")).to_be_visible()
    expect(page.locator("h3", has_text="POST /classify")).to_be_visible()
    assert all(address.startswith((url, "blob:")) for address in asked)


def test_a_trained_model_shows_what_it_can_and_says_what_it_cannot(
    open_page: Open, make_model: Callable[[Path], ModelFolder], serving: Callable[[App], str], tmp_path: Path
) -> None:
    page = open_page(f"{serving(guarded(make_model(tmp_path / 'small')))}#/teach", pardoned="409")
    for thing in ("sun", "fish"):
        teach_class(page, thing, pictures(thing, range(3)))
    page.get_by_label("Name").fill("sun")
    bring(page, [picture("sun", 7)])
    page.get_by_role("button", name="Teach it 1 picture").click()
    expect(page.locator(".composer .error")).to_be_visible()  # it takes new classes alone
    go(page, "ask")
    bring(page, [picture("fish", 7)])
    expect(page.locator(".verdict")).to_be_visible()
    for view in ("quality", "model", "history", "unknown"):
        go(page, view)
        expect(page.locator("#main .card, #main .note").first).to_be_visible()
    go(page, "class/sun")
    expect(page.locator(".pictures img")).to_have_count(3)
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget for good").click()
    expect(page.locator(".class")).to_have_count(1)
