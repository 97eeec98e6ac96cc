"""The pictures of docs/serve.md: its story, played in Chromium with drawings before a model that `serve` begins.

    PYTHONPATH=src:tests python tests/bench/serve_story.py docs/images

Also leaves the model (`things`) and an inbox in the folder that --keep names, for `episodica sort`.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from browser.conftest import CHROMIUM, QUIET
from browser.drawings import encoded
from browser.teaching import bring, go, picture, pictures, teach_class

KNOWN = ("apple", "boat", "fish", "house", "leaf", "mushroom")
INBOX = {"apple": 3, "boat": 3, "fish": 2, "house": 2, "leaf": 2, "mushroom": 2, "sun": 4, "cup": 4}
WIDE, TALL, COLOURS = 1120, 800, 256


def inbox() -> list[tuple[str, int]]:
    return [(thing, 20 + i) for thing, many in INBOX.items() for i in range(many)]


@contextmanager
def served(model: Path, port: int) -> Iterator[str]:
    command = [str(Path(sys.executable).with_name("episodica")), "serve", str(model), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"http://localhost:{port}/"
    for _ in range(240):
        try:
            urllib.request.urlopen(f"{url}health").close()
            break
        except OSError:
            time.sleep(0.25)
    try:
        yield url
    finally:
        process.terminate()
        process.wait()


def opened(
    browser: Browser, url: str, wide: int = WIDE, tall: int = TALL, scheme: Literal["light", "dark"] = "light"
) -> Page:
    context = browser.new_context(
        viewport={"width": wide, "height": tall}, locale="en-GB", color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("h1")
    return page


def shot(page: Page, path: Path, tall: int = TALL) -> Image.Image:
    """As it is seen, without what passes; in few colours, so that the file is small."""
    page.evaluate("document.getElementById('toasts').replaceChildren()")
    page.set_viewport_size({"width": (page.viewport_size or {})["width"], "height": tall})
    page.mouse.move(0, 0)
    page.wait_for_timeout(400)
    page.screenshot(path=path)
    picture = Image.open(path).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return picture


def story(browser: Browser, url: str, out: Path) -> None:
    page = opened(browser, url)
    page.get_by_label("Name").fill("apple")
    bring(page, pictures("apple", range(8)))
    page.wait_for_selector(".thumbs li:nth-child(8) img")
    shot(page, out / "serve-first.png", 600)
    page.get_by_role("button", name="Teach it 8").click()
    page.wait_for_selector(".class")
    for thing in KNOWN[1:]:
        teach_class(page, thing, pictures(thing, range(8)))
    shot(page, out / "serve-teach.png", 960)
    go(page, "ask")
    bring(page, pictures("house", [11]))
    page.wait_for_selector(".nearest img")
    shot(page, out / "serve-answer.png", 820)
    page.get_by_role("button", name="Clear").click()
    bring(page, [picture(thing, i) for thing, i in inbox()])
    page.wait_for_selector("text=22 pictures recognised")
    page.get_by_label("Order").select_option("doubt")
    shot(page, out / "serve-many.png", 840)
    go(page, "unknown")
    page.wait_for_selector(".group")
    shot(page, out / "serve-unknown.png", 600)
    for thing in ("cup", "sun"):
        group = page.locator(".group", has=page.get_by_alt_text(f"{thing}-20.png"))
        group.get_by_label("What are they?").fill(thing)
        group.get_by_role("button", name="Make it a class").click()
        page.wait_for_selector(f'[alt="{thing}-20.png"]', state="detached")
    go(page, "quality")
    page.wait_for_selector(".plane image")
    page.locator(".plane").scroll_into_view_if_needed()
    page.locator(".plane").focus()
    page.keyboard.press("ArrowUp")
    shot(page, out / "serve-quality.png", 1000)
    page.context.close()


def phones(browser: Browser, url: str, out: Path) -> None:
    page = opened(browser, f"{url}#/ask", 390, 800, "dark")
    bring(page, pictures("boat", [14]))
    page.wait_for_selector(".nearest img")
    sides = [shot(page, out / "serve-phone.png")]
    for view, shows in (("teach", ".class img"), ("quality", ".plane")):
        go(page, view)
        page.wait_for_selector(shows)
        if view == "teach":
            page.locator("#classes-bar").scroll_into_view_if_needed()
            page.mouse.wheel(0, 400)
        sides.append(shot(page, out / "serve-phone.png"))
    page.context.close()
    sheet = Image.new("RGB", (390 * 3 + 40, 800), "#8a8f98")
    for i, side in enumerate(sides):
        sheet.paste(side, (i * 410, 0))
    sheet.quantize(COLOURS, dither=Image.Dither.NONE).save(out / "serve-phone.png", optimize=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("out", type=Path, help="where the pictures go")
    options.add_argument("--keep", type=Path, help="a new folder for the model and an inbox")
    options.add_argument("--port", type=int, default=8123)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        place = chosen.keep or Path(passing)
        (place / "inbox").mkdir(parents=True)
        for number, (thing, i) in enumerate(inbox()):
            (place / "inbox" / f"IMG_{2041 + number * 7 % 22}.png").write_bytes(encoded(thing, i))
        with served(place / "things", chosen.port) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
            story(browser, url, chosen.out)
            phones(browser, url, chosen.out)
            browser.close()


if __name__ == "__main__":
    main()
