"""Browsers before a model, and the pictures that are shown to it."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from axe_playwright_python import sync_playwright as axe
from playwright.sync_api import Browser, FilePayload, Locator, Page

from browser.drawings import encoded
from episodica.web.guard import App
from unit.serve.asking import Asker

AXE = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
TEXT: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no picture"}


def picture(thing: str, number: int) -> FilePayload:
    return {"name": f"{thing}-{number}.png", "mimeType": "image/png", "buffer": encoded(thing, number)}


def pictures(thing: str, numbers: Iterable[int]) -> list[FilePayload]:
    return [picture(thing, number) for number in numbers]


def teach(app: App, things: Sequence[str], numbers: Sequence[int]) -> None:
    """Over HTTP, as the page does. In a thread of its own: playwright's loop runs in this one."""

    def ask() -> None:
        asker = Asker(app)
        for thing in things:
            files = [("images", (f"{i}.png", encoded(thing, i))) for i in numbers]
            answer = asker.ask("POST", "/images", files=files, data={"class": thing})
            assert answer.status_code == 200, answer.text

    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask).result()


class Classroom:
    """Opens pages, and fails where their console says something that is not pardoned."""

    def __init__(self, browser: Browser) -> None:
        self.browser, self.wrong, self.pages = browser, [], []

    def open(self, url: str, *, wide: int = 1280, pardoned: str | None = None, **how: Any) -> Page:
        how = {"locale": "en-GB", "reduced_motion": "reduce", **how}
        page = self.browser.new_context(viewport={"width": wide, "height": 844}, **how).new_page()
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on(
            "console", lambda message: self._heard(message.type, f"{message.text} {message.location['url']}", pardoned)
        )
        page.goto(url)
        page.wait_for_selector("h1")
        self.pages.append(page)
        return page

    def _heard(self, kind: str, text: str, pardoned: str | None) -> None:
        if kind == "error" and (pardoned is None or pardoned not in text):
            self.wrong.append(text)

    def close(self) -> None:
        for page in self.pages:
            page.context.close()
        assert not self.wrong, self.wrong


def go(page: Page, view: str) -> None:
    page.evaluate("view => { location.hash = `#/${view}`; }", view)
    page.wait_for_selector("#main h1")


def bring(page: Page, files: Sequence[FilePayload]) -> None:
    """By the file dialogue."""
    page.locator("#main input[type=file]").first.set_input_files(files)


def teach_class(page: Page, name: str, files: Sequence[FilePayload]) -> None:
    go(page, "teach")
    page.get_by_label("Name").fill(name)
    bring(page, files)
    page.get_by_role("button", name=f"Teach it {len(files)}").click()
    page.wait_for_selector(f'.class .called:text-is("{name}")')


def toast(page: Page) -> Locator:
    return page.locator(".toast")


def findings(page: Page, *rules: str) -> list[str]:
    """What axe-core finds wrong, serious or not: by all of its rules, or by these."""
    if page.evaluate("() => typeof axe") == "undefined":
        page.evaluate(AXE)
    found = page.evaluate("rules => axe.run(rules.length ? { runOnly: rules } : {})", list(rules))["violations"]
    return [f"{one['impact']}: {one['id']} at {[node['target'] for node in one['nodes']][:3]}" for one in found]
