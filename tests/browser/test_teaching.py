"""From nothing to a model that lives, in a browser: classes come by dialogue, folder, clipboard and camera, and go."""

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from browser.drawings import encoded
from browser.teaching import TEXT, bring, go, picture, pictures, toast

Open = Callable[..., Page]
DROPPED = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name, { type: 'image/png' }));
  const how = { bubbles: true, cancelable: true };
  const drop = name === 'image.png' ? new ClipboardEvent('paste', { clipboardData: files, ...how })
    : new DragEvent('drop', { dataTransfer: files, ...how });
  document.querySelector('.drop').dispatchEvent(drop);
}"""


def folder_of(path: Path, things: dict[str, range]) -> Path:
    for place, numbers in things.items():
        (path / place).mkdir(parents=True)
        for i in numbers:
            (path / place / f"{i}.png").write_bytes(encoded(Path(place).name, i))
    return path


def test_from_nothing_to_an_answer(open_page: Open, new_url: str, tmp_path: Path) -> None:
    page = open_page(new_url)
    expect(page.locator(".lead")).to_contain_text("This model is empty")
    page.get_by_role("button", name="Teach it").click()
    expect(page.locator(".composer .error")).to_contain_text("Give the class a name")
    page.get_by_label("Name").fill("sun")
    page.get_by_role("button", name="Teach it").click()
    expect(page.locator(".composer .error")).to_contain_text("at least one picture")

    bring(page, [*pictures("sun", range(5)), TEXT, {**picture("sun", 1), "name": "again.png"}])
    expect(page.locator(".thumbs img")).to_have_count(5)
    expect(page.locator(".tray .note li")).to_contain_text(
        ["notes.txt is not a picture", "again.png is the same picture as sun-1.png"]
    )
    page.get_by_role("button", name="Take out sun-4.png").click()
    expect(page.locator("#said")).to_have_text("4 pictures ready to be taught.")
    page.get_by_role("button", name="Teach it 4 pictures").click()
    expect(toast(page)).to_contain_text("It knows sun now, from 4 pictures.")
    expect(page.locator("#said")).to_be_empty()
    expect(page.locator(".class")).to_contain_text(["sun"])
    expect(page.locator(".class img").first).to_have_js_property("complete", True)

    page.locator("input[webkitdirectory]").set_input_files(
        folder_of(tmp_path / "more", {"boat": range(4), "cup": range(4)})
    )
    expect(page.locator(".drafts > li")).to_have_count(2)
    page.get_by_role("button", name="Teach it 2 classes from 8 pictures").click()
    expect(page.locator(".class .called")).to_have_text(["sun", "boat", "cup"])

    page.get_by_label("Name").fill("sun")
    expect(page.locator(".drafts > li > .hint")).to_have_text("sun is known: the pictures are added to it.")
    bring(page, [picture("sun", 0), picture("sun", 5)])
    page.get_by_role("button", name="Teach it 2 pictures").click()
    expect(page.locator(".composer .note")).to_contain_text("sun-0.png is known already, as sun.")
    expect(page.locator(".class").first).to_contain_text("5 pictures")

    go(page, "ask")
    bring(page, [picture("boat", 9)])
    expect(page.locator(".verdict")).to_contain_text("boat")
    expect(page.locator(".score")).to_have_count(3)
    near = page.locator(".nearest img")
    assert near.evaluate("image => image.decode().then(() => image.naturalWidth)") == 192

    page.click("#undo")
    expect(toast(page)).to_contain_text("undid")
    go(page, "history")
    expect(page.locator(".changes p")).to_have_count(4)
    expect(page.locator(".changes p").nth(1)).to_contain_text("(undone)")
    expect(page.locator(".changes p").nth(1)).to_contain_text("added 1 picture to sun")
    expect(page.locator(".changes p").nth(2)).to_have_text("new classes boat, cup, 8 pictures")
    expect(page.locator(".changes p").nth(3)).to_have_text("new class sun, 4 pictures")
    expect(page.locator(".changes small").first).to_have_text("on this computer")
    page.get_by_role("button", name="Back to before this").last.click()
    page.get_by_role("button", name="Undo 2 changes").click()
    go(page, "teach")
    expect(page.locator(".lead")).to_contain_text("This model is empty")


def test_folders_are_dropped_and_pictures_pasted(open_page: Open, url: str, tmp_path: Path) -> None:
    page = open_page(f"{url}#/teach")
    parts = folder_of(tmp_path / "inbox", {"train/boat": range(2), "val/boat": range(2, 3), "train/cup": range(2)})
    (parts / ".hidden").write_text("left by a system")
    box = page.locator(".drop").bounding_box()
    assert box is not None
    where = {
        "x": box["x"] + 20,
        "y": box["y"] + 20,
        "data": {"items": [], "files": [str(parts)], "dragOperationsMask": 1},
    }
    chromium = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        chromium.send("Input.dispatchDragEvent", {"type": kind, **where})
    expect(page.locator(".drafts > li")).to_have_count(2)
    assert [field.input_value() for field in page.locator(".drafts input").all()] == ["boat", "cup"]
    expect(page.locator(".drafts > li").first.locator("img")).to_have_count(3)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".thumbs img")).to_have_count(0)

    for name in ("dropped.png", "image.png"):
        page.evaluate(DROPPED, [name, b64encode(encoded("sun", len(name))).decode()])
    expect(page.locator(".thumbs img")).to_have_count(2)
    expect(page.locator(".thumbs img").last).to_have_attribute("alt", "image-1.png")


def test_the_camera_records_and_asks(open_page: Open, url: str) -> None:
    page = open_page(f"{url}#/teach", permissions=["camera"])
    page.get_by_label("Name").fill("seen")
    page.get_by_role("button", name="Camera").click()
    record = page.get_by_role("button", name="Hold to record")
    expect(record).to_be_focused()
    page.keyboard.down(" ")
    expect(page.locator(".thumbs img").nth(1)).to_be_visible()  # two, or more where the browser is quicker than we
    page.keyboard.up(" ")
    expect(page.locator("#said")).to_contain_text("taken.")
    record.click()  # once is one more, or none that is new
    go(page, "ask")
    page.get_by_role("button", name="Live camera").click()
    expect(page.locator(".live .score")).to_have_count(5)
    page.get_by_role("button", name="Keep this picture").click()
    page.get_by_role("button", name="Another class").first.click()
    page.get_by_label("Find a class").fill("sight")
    page.keyboard.press("Enter")
    expect(toast(page)).to_contain_text("set right: a picture of sight")
    page.get_by_role("button", name="Close the camera").click()
    expect(page.locator(".live")).to_have_count(0)
    expect(page.locator(".large .verdict")).to_be_visible()


def test_a_class_is_looked_through_renamed_and_forgotten_while_another_browser_looks_on(
    open_page: Open, url: str
) -> None:
    anna, ben = open_page(f"{url}#/class/leaf"), open_page(f"{url}#/teach")
    anna.click("#settings")
    anna.get_by_label("Your name").fill("Anna Ä")
    anna.get_by_role("button", name="Done").click()
    expect(anna.locator(".frame")).to_have_count(6)
    anna.locator(".frame").nth(0).click()
    anna.locator(".frame").nth(1).click()
    anna.get_by_role("button", name="Take out").click()
    expect(anna.locator(".frame")).to_have_count(4)
    expect(toast(ben)).to_contain_text("Anna Ä: took 2 pictures out of leaf")
    expect(ben.locator(".class", has_text="leaf")).to_contain_text("4 pictures")

    anna.locator(".frame").first.click()
    anna.get_by_role("button", name="Put elsewhere").click()
    anna.get_by_role("button", name="house").click()
    expect(anna.locator(".frame")).to_have_count(3)
    anna.get_by_role("button", name="Rename").click()
    anna.get_by_label("Name", exact=True).fill("foliage")
    anna.locator("dialog .main").click()
    expect(anna.locator("h1")).to_have_text("foliage")
    expect(ben.locator(".class", has_text="foliage")).to_be_visible()

    ben.locator(".class", has_text="foliage").click()
    ben.get_by_role("button", name="Forget").click()
    expect(ben.locator("dialog")).to_contain_text("for good")
    ben.keyboard.press("Escape")
    expect(ben.locator("dialog")).to_have_count(0)
    ben.get_by_role("button", name="Forget").click()
    ben.get_by_role("button", name="Forget for good").click()
    expect(ben.locator(".class")).to_have_count(5)
    expect(anna.locator("h1")).to_have_text("Teach")  # its class is gone
    expect(anna.locator(".class")).to_have_count(5)
    expect(anna.locator("#undo")).to_be_disabled()

    ben.locator(".class", has_text="house").click()
    ben.get_by_role("button", name="Rename").click()
    ben.get_by_label("Name", exact=True).fill("home")
    ben.locator("dialog .main").click()
    expect(ben.locator("h1")).to_have_text("home")
    go(ben, "history")
    expect(ben.locator(".changes [data-what=learn], .changes [data-what=add]")).not_to_have_count(0)
    expect(ben.locator(".changes button")).to_have_count(1)  # nothing leads back beyond what was forgotten
