"""The page of `episodica serve` in a real browser: upload, classify, add, remove, what goes wrong, keyboard, phone."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import FilePayload, Locator, Page, expect

from episodica.classifier.model_folder import ModelFolder
from episodica.data.glyph_drawing import draw
from episodica.serve.app import guarded
from episodica.web.guard import App

GLYPHS = draw(6, 6, 32, 0)[0].reshape(6, 6, 32, 32, 3)


def picture(character: int, drawing: int) -> FilePayload:
    file = io.BytesIO()
    Image.fromarray(GLYPHS[character, drawing]).resize((96, 96), Image.Resampling.NEAREST).save(file, "PNG")
    return {"name": f"{character}-{drawing}.png", "mimeType": "image/png", "buffer": file.getvalue()}


FOCUSED = """() => {
  const on = document.activeElement;
  return on.getAttribute('aria-label') || on.id || on.type || on.className;
}"""
TEXT: FilePayload = {"name": "notes.png", "mimeType": "image/png", "buffer": b"no image"}


@pytest.fixture
def folder(make_model: Callable[[Path], ModelFolder], tmp_path: Path) -> ModelFolder:
    folder = make_model(tmp_path / "model")
    folder.remember({name: list(GLYPHS[i, :3]) for i, name in enumerate(("ka", "ri", "mo"))})
    return folder


@pytest.fixture
def url(folder: ModelFolder, serving: Callable[[App], str]) -> str:
    return serving(guarded(folder))


def cards(page: Page) -> Locator:
    return page.locator("#queries .cards > li")


def test_images_are_recognised_by_the_models_classes(page: Page, url: str, folder: ModelFolder) -> None:
    page.goto(url)
    expect(page.locator("#known li")).to_have_count(3)
    page.set_input_files("#queries input", [picture(0, 1), picture(1, 2)])
    page.click("text=Recognise >> nth=-1")
    expect(page.locator("#status")).to_have_text("2 recognised.")
    expect(cards(page).nth(0).locator(".verdict")).to_contain_text("ka")
    expect(cards(page).nth(0).locator(".bars li")).to_have_count(3)
    near = cards(page).nth(0).locator(".nearest img")
    expect(near).to_have_attribute("src", f"/images/{folder.state().classes[0].images[1]}")
    assert near.evaluate("image => image.decode().then(() => image.naturalWidth)") == 32
    width = cards(page).nth(0).locator(".filled").first.evaluate("bar => parseFloat(bar.style.width)")
    assert 33 < width <= 100


def test_images_are_recognised_by_classes_of_ones_own(page: Page, url: str, folder: ModelFolder) -> None:
    before = folder.state().id
    page.goto(url)
    page.check("input[value=own]")
    page.fill("#own-1", "round")
    for group, character in ((0, 3), (1, 4)):
        page.locator("#groups input[type=file]").nth(group).set_input_files([picture(character, i) for i in range(2)])
    page.set_input_files("#queries input", [picture(4, 1), picture(3, 0)])
    page.click("#recognise")
    expect(cards(page).nth(0).locator(".verdict")).to_contain_text("Class 2")
    expect(cards(page).nth(1).locator(".verdict")).to_contain_text("round")
    expect(cards(page).nth(0).locator(".nearest")).to_contain_text("4-1.png")
    assert folder.state().id == before


def test_images_can_be_dropped_and_taken_out(page: Page, url: str) -> None:
    page.goto(url)
    page.evaluate(
        """() => {
          const files = new DataTransfer();
          files.items.add(new File(['x'], '<b>one</b>.png', { type: 'image/png' }));
          files.items.add(new File(['x'], 'two.png', { type: 'image/png' }));
          const drop = new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true });
          document.querySelector('#queries .drop').dispatchEvent(drop);
        }"""
    )
    expect(cards(page)).to_have_count(2)
    page.get_by_role("button", name="Take out <b>one</b>.png").click()
    expect(cards(page)).to_have_count(1)
    page.click("#clear")
    expect(cards(page)).to_have_count(0)


def test_a_class_is_added_and_removed(page: Page, url: str, folder: ModelFolder) -> None:
    page.goto(url)
    page.fill("#name", "su & 'co'")
    page.set_input_files("#examples input", [picture(3, 0), picture(3, 1)])
    page.click("text=Add class")
    expect(page.locator("#status")).to_have_text("su & 'co' was added.")
    expect(page.locator("#known li")).to_have_count(4)
    assert folder.state().record.names[-1] == "su & 'co'"
    remove = page.get_by_role("button", name="Remove su & 'co'")
    remove.click()
    expect(remove).to_have_text("Remove for good?")
    assert len(folder.state().classes) == 4
    remove.click()
    expect(page.locator("#known li")).to_have_count(3)
    assert folder.state().record.names == ["ka", "ri", "mo"]


def test_messages_stand_next_to_their_cause(forgiving: Page, url: str, folder: ModelFolder) -> None:
    page = forgiving
    page.goto(url)
    page.click("#recognise")
    expect(page.locator("#queries .tray > .error")).to_have_text("Add at least one image.")
    page.set_input_files("#queries input", [picture(0, 0), TEXT, picture(1, 0)])
    page.click("#recognise")
    expect(page.locator("#status")).to_contain_text("2 of 3")
    expect(cards(page).nth(1).locator(".error")).to_contain_text("notes.png: is not an image")
    expect(cards(page).nth(2).locator(".verdict")).to_contain_text("ri")

    page.click("text=Add class")
    expect(page.locator("#name-error")).to_have_text("Give the class a name.")
    page.fill("#name", "<img src=x onerror=alert(1)>")
    page.set_input_files("#examples input", [TEXT])
    page.click("text=Add class")
    expect(page.locator("#name-error")).to_contain_text("angle brackets")
    page.fill("#name", "ka")
    page.click("text=Add class")
    expect(page.locator("#examples li .error")).to_be_hidden()
    expect(page.locator("#name-error")).to_contain_text("there is a class of this name")
    page.fill("#name", "new")
    page.click("text=Add class")
    expect(page.locator("#examples li .error")).to_contain_text("is not an image")

    page.check("input[value=own]")
    page.fill("#own-2", "a/b")
    page.locator("#groups input[type=file]").nth(1).set_input_files([picture(0, 0)])
    page.click("#recognise")
    expect(page.locator("#own-error-2")).to_contain_text("slashes")
    page.fill("#own-2", "fine")
    page.locator("#groups input[type=file]").nth(1).set_input_files([TEXT])
    page.click("#recognise")
    expect(page.locator("#groups .thumbs li").nth(1).locator(".error")).to_contain_text("is not an image")

    page.check("input[value=model]")
    with folder.writing():
        page.get_by_role("button", name="Remove ka").click()
        page.get_by_role("button", name="Remove ka").click()
        expect(page.locator("#classes-error")).to_contain_text("being changed by another process")


def test_names_are_only_text(page: Page, url: str, folder: ModelFolder) -> None:
    """Folders may have any name, so a model may know classes that the server would not add."""
    folder.remember({"<img src=x onerror=document.title=1>": [GLYPHS[4, 0]]})
    page.goto(url)
    page.set_input_files("#queries input", [picture(4, 0)])
    page.click("#recognise")
    expect(cards(page).locator(".verdict")).to_contain_text("<img src=x")
    assert page.title().startswith("Recognise")
    assert page.locator("#known img[src=x], .verdict img").count() == 0


def test_the_keyboard_is_enough(page: Page, url: str, folder: ModelFolder) -> None:
    page.goto(url)
    expect(page.locator("#known li")).to_have_count(3)
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    assert seen[:2] == ["skip", ""]
    for part in ("Remove ka", "Remove mo", "name", "file", "recognise", "clear"):
        assert part in seen, (part, seen)
    page.set_input_files("#queries input", [picture(0, 0)])
    page.focus("#recognise")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text("1 recognised.")
    page.get_by_role("button", name="Remove mo").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Remove mo")).to_have_text("Remove")
    page.keyboard.press("Space")
    page.keyboard.press("Space")
    expect(page.locator("#known li")).to_have_count(2)


def test_a_phone_is_wide_enough(page: Page, url: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(url)
    page.set_input_files("#queries input", [picture(0, 0), picture(1, 1)])
    page.click("#recognise")
    expect(page.locator("#status")).to_have_text("2 recognised.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for button in page.locator("button:visible:not(.out)").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 40


def test_the_interface_is_described_without_help_from_elsewhere(page: Page, url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{url}docs")
    expect(page.locator("h3")).to_contain_text(["POST /classify", "GET /classes", "POST /classes", "DELETE /classes"])
    assert all(address.startswith(url) for address in asked)
