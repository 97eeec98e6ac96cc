"""The page: everything inside, everything from folders escaped."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from episodica.files.door import Folder
from episodica.report.aggregate import lines
from episodica.report.cells import Cell, Row, Table
from episodica.report.content import Part, Picture, Report, Section, Strip
from episodica.report.figures.canvas import GROUND, INK, for_page, save
from episodica.report.figures.curves import curves
from episodica.report.formats.html import html

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)> & ünï_cøde=1"


def drawing(folder: Path, figure: Any) -> str:
    save(figure, Folder(folder), "drawing", ["svg"])
    return (folder / "drawing.svg").read_text()


class Reader(HTMLParser):
    """What a browser would make of it: the tags with their attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def page(make_run, tmp_path: Path) -> Reader:
    table = Table(
        "t",
        HOSTILE,
        ("2", HOSTILE),
        (Row(HOSTILE, (Cell(43.25, 1.0, source=HOSTILE, paper=1.0), Cell(word=HOSTILE)), HOSTILE),),
    )
    picture = Picture("p", HOSTILE, curves(lines([make_run("ft"), make_run("joint")])))
    part = Part(HOSTILE, HOSTILE, (table,), (picture,), (Strip(HOSTILE, "data:image/jpeg;base64,AA=="),))
    report = Report((Section(HOSTILE, (HOSTILE,), (part,), scale=0.5),))
    return Reader(html(report, {"p": drawing(tmp_path, picture.figure)}, HOSTILE, (HOSTILE,)))


def test_names_from_folders_stay_text(page: Reader):
    assert not [tag for tag, _ in page.tags if tag == "script"]
    assert [attributes["src"] for tag, attributes in page.tags if tag == "img"] == ["data:image/jpeg;base64,AA=="]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert page.text.count(HOSTILE) >= 8


def test_nothing_is_fetched(page: Reader):
    for _, attributes in page.tags:
        for name in ("href", "src", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))


def test_ids_are_unique_and_every_reference_has_one(page: Reader):
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        if (attributes.get("xlink:href") or "").startswith("#"):
            assert str(attributes["xlink:href"])[1:] in ids


def test_scaled_sections_say_so(page: Reader):
    assert "shortened schedule" in page.text


def test_pictures_take_the_pages_ink_and_have_no_ground(make_run, tmp_path: Path):
    saved = drawing(tmp_path, curves(lines([make_run("ft")])))
    drawn = for_page(saved, "one")
    for colour in (INK, GROUND):
        assert colour in saved
        assert colour not in drawn
    assert "currentColor" in drawn
    assert saved == drawing(tmp_path, curves(lines([make_run("ft")])))
