"""Pages in a real browser: the distribution's Chromium, without a screen, before whose camera drawings lie."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from browser.drawings import THINGS, encoded
from browser.teaching import Classroom, teach
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.new_model import empty_model
from episodica.data.decoding_process import DecodingProcess
from episodica.serve.app import guarded
from episodica.web.guard import App

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def camera(film: Path) -> list[str]:
    """What the camera sees: a sun, then a mushroom, and so on."""
    film.write_bytes(b"".join(encoded(thing, i, 320, "JPEG") for i in range(20, 24) for thing in ("sun", "mushroom")))
    return [
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-video-capture={film}",
    ]


@pytest.fixture(scope="package")  # as long as it is open its loop runs, and no other one can be run in this process
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: install the package chromium to test the pages")
    expect.set_options(timeout=60_000)  # a machine may be busy
    film = camera(tmp_path_factory.mktemp("camera") / "film.mjpeg")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET, *film])
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


@pytest.fixture(scope="session")
def decoder() -> Iterator[DecodingProcess]:
    with DecodingProcess() as process:
        yield process


@pytest.fixture(scope="session")
def taught(tmp_path_factory: pytest.TempPathFactory, decoder: DecodingProcess) -> Path:
    """A model that knows six things from six drawings each; not to be changed."""
    path = tmp_path_factory.mktemp("taught") / "things"
    folder = ModelFolder(path)
    teach(guarded(folder, decoder=decoder, first=empty_model(folder.encoders)), list(THINGS)[:6], range(6))
    return path


@pytest.fixture
def open_page(browser: Browser, serving: Callable[[App], str]) -> Iterator[Callable[..., Page]]:
    """A browser of its own for each call, at the model that is served there."""
    room = Classroom(browser)
    yield room.open
    room.close()


@pytest.fixture
def url(taught: Path, tmp_path: Path, serving: Callable[[App], str], decoder: DecodingProcess) -> str:
    """A model that knows an apple, a fish, a house, a leaf, a mushroom and a boat, and may be changed."""
    return serving(guarded(ModelFolder(shutil.copytree(taught, tmp_path / "things")), decoder=decoder))


@pytest.fixture
def new_url(tmp_path: Path, serving: Callable[[App], str], decoder: DecodingProcess) -> str:
    """No model yet."""
    folder = ModelFolder(tmp_path / "new")
    return serving(guarded(folder, decoder=decoder, first=empty_model(folder.encoders)))
