"""Answers in a browser: many at once, set right with one click, saved; and what fits nothing gets a name."""

import csv
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from browser.teaching import TEXT, bring, go, picture, pictures, toast

Open = Callable[..., Page]


def test_many_answers_are_filtered_sorted_saved_and_set_right(open_page: Open, url: str, tmp_path: Path) -> None:
    page = open_page(f"{url}#/ask", pardoned="422")  # a file that is no image is refused
    expect(page.locator(".sources .main")).to_have_text("Choose pictures")
    bring(page, [*pictures("apple", range(8, 11)), *pictures("fish", range(8, 10)), picture("cup", 3), TEXT])
    expect(page.locator(".answer")).to_have_count(7)
    expect(page.locator(".answer .bad")).to_contain_text("not an image")
    expect(page.get_by_role("status").first).to_have_text("6 pictures recognised")
    expect(page.locator(".answer .said").first).to_contain_text("apple")

    page.get_by_role("button", name="fish 2", exact=True).click()
    expect(page.locator(".answer")).to_have_count(2)
    page.get_by_role("button", name="All 7", exact=True).click()
    page.get_by_label("Order").select_option("doubt")
    expect(page.locator(".answer").first).to_contain_text("cup-3.png")  # it knows no cup
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    saved.value.save_as(tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == [
        f"{n}.png" for n in ("apple-8", "apple-9", "apple-10", "fish-8", "fish-9", "cup-3")
    ] + ["notes.txt"]
    assert [row["class"] for row in rows[:3]] == ["apple"] * 3
    assert "not an image" in rows[6]["error"]

    page.locator(".answer").first.click()
    wrong = page.locator("dialog .score", has_text="fish")
    wrong.click()
    expect(page.locator("dialog .good")).to_have_text("It is a picture of fish now.")
    expect(page.locator("dialog .effect b")).to_contain_text("fish")
    page.locator("dialog .nearest img").evaluate("image => image.decode()")  # of a picture that is gone after the undo
    expect(toast(page)).to_contain_text("The picture joins fish.")
    toast(page).get_by_role("button", name="Undo").click()  # over the dialog, which lies over all else
    expect(page.locator("dialog .good")).to_have_count(0)
    expect(page.locator("dialog .effect")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    expect(toast(page)).to_contain_text("undid a change of fish")  # which the dialog has not taken with it
    expect(page.locator(".taught")).to_have_count(0)
    expect(page.get_by_role("button", name="fish 2", exact=True)).to_be_visible()
    expect(page.locator(".note", has_text="The model has changed")).to_have_count(0)

    page.locator(".answer").first.click()
    page.locator("dialog .score", has_text="fish").click()
    expect(page.locator("dialog .good")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".taught")).to_have_text("taught as fish")
    page.click("#undo")
    expect(page.locator(".taught")).to_have_count(0)


def test_what_the_server_did_not_answer_is_asked_again(open_page: Open, url: str) -> None:
    page = open_page(f"{url}#/ask", pardoned="/classify")
    page.route("**/classify", lambda route: route.abort(), times=1)
    bring(page, pictures("apple", range(8, 10)))
    expect(page.locator(".note.error")).to_contain_text("The server did not answer.")
    expect(page.locator(".answer").first).to_contain_text("no answer yet")
    page.get_by_role("button", name="Ask again").click()
    expect(page.get_by_role("button", name="apple 2", exact=True)).to_be_visible()
    expect(page.locator(".note.error")).to_have_count(0)


def test_what_fits_nothing_is_named_merged_or_thrown_away(open_page: Open, url: str) -> None:
    page = open_page(f"{url}#/ask")
    bring(page, [*pictures("sun", range(4)), *pictures("cup", range(4))])
    expect(page.get_by_role("status").first).to_have_text("8 pictures recognised")
    waiting = int(page.locator("#views .count").inner_text().split()[0])
    assert waiting >= 6, "drawings of things that it does not know"
    go(page, "unknown")
    expect(page.locator(".group .frame")).to_have_count(waiting)
    suns = page.locator(".group", has=page.get_by_alt_text("sun-0.png"))
    suns.locator(".frame").last.click()  # it stays behind
    chosen = suns.locator(".frame[aria-pressed=true]").count()
    suns.get_by_label("What are they?").fill("sun")
    suns.get_by_role("button", name="Make it a class").click()
    expect(toast(page)).to_contain_text("sun")
    expect(page.get_by_alt_text("sun-0.png")).to_have_count(0)
    assert page.locator(".group .frame").count() <= waiting - chosen  # fewer where one that stayed fits it now
    cups = page.locator(".group", has=page.get_by_alt_text("cup-0.png"))
    cups.get_by_label("What are they?").fill("house")
    expect(cups.locator(".main")).to_have_text("Put into house")
    left = page.locator(".group .frame").count()
    cups.get_by_role("button", name="Throw away").click()
    expect(page.locator(".group .frame")).not_to_have_count(left)
    toast(page).get_by_role("button", name="Undo").click()
    expect(page.locator(".group .frame")).to_have_count(left)
    go(page, "teach")
    expect(page.locator(".class .called", has_text="sun")).to_be_visible()
