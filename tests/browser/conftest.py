"""Pages in a real browser: the distribution's Chromium, without a screen."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: install the package chromium to test the pages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@contextmanager
def watched(browser: Browser, *, pardoned: str | None = None) -> Iterator[Page]:
    """A page that fails the test where its console says anything but what is pardoned."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    yield page
    page.close()
    assert all(pardoned is not None and pardoned in text for text in wrong), wrong


@pytest.fixture
def page(browser: Browser, serving: object) -> Iterator[Page]:
    """Closed before the servers stop, which it would complain about."""
    with watched(browser) as page:
        yield page


@pytest.fixture
def forgiving(browser: Browser) -> Iterator[Page]:
    """A page that may be refused things, which browsers report as errors, but may not go wrong by itself."""
    with watched(browser, pardoned="Failed to load resource") as page:
        yield page
