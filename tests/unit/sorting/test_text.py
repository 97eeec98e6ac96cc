"""Names that every file system takes, and cells that mean one path."""

import csv
import os
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st

from episodica.files.foreign_text import FORMULA
from episodica.files.openat import component
from episodica.sorting.lines import Line, header, path_cell, path_of, read, written
from episodica.sorting.names import DEVICES, FORBIDDEN, file_name, folder_name, numbered, same_for_all

anything = st.text(st.characters(codec=None), max_size=300).map(lambda text: text.encode("utf-8", "replace").decode())
paths = st.binary(min_size=1, max_size=80).filter(lambda path: b"\0" not in path).map(os.fsdecode)


@given(anything, st.integers(1, 10**6))
def test_names_are_names_everywhere(text: str, number: int) -> None:
    for name in (file_name(text), folder_name(text), numbered(file_name(text), number)):
        assert component(name) == name
        assert len(name.encode()) < 230
        assert name.isprintable()
        assert not FORBIDDEN & set(name)
        assert not name.startswith(".")
        assert not name.endswith((".", " "))
    assert file_name(text).partition(".")[0].casefold() not in DEVICES
    assert same_for_all(folder_name(text)) not in ("unknown", "unsure")
    assert file_name(file_name(text)) == file_name(text)


def test_plain_names_stay_as_they_are() -> None:
    for name in ("robin.jpg", "Great Tit (male).JPG", "Kohlmeise größer.png", "v1.2 final.webp"):
        assert file_name(name) == name
    assert numbered("robin.jpg", 2) == "robin-2.jpg"
    assert same_for_all("Red/A.png") == same_for_all("red/a.PNG")


@given(paths)
def test_a_cell_means_one_path_and_is_no_formula(path: str) -> None:
    cell = path_cell(path)
    assert path_of(cell) == path
    assert cell.isprintable()
    assert not cell.lstrip().startswith(FORMULA)


@given(st.lists(st.tuples(paths, paths, anything), max_size=5))
def test_what_is_written_is_read(rows: list[tuple[str, str, str]]) -> None:
    lines = [Line(image, to, "moved", text, 0.5, None, 1.0, text, 1, "d") for image, to, text in rows]
    text = header() + written(lines)
    assert [(image, to) for image, to, *_ in read(StringIO(text, newline=""), "x")] == [row[:2] for row in rows]
    assert len(list(csv.reader(StringIO(text, newline="")))) == len(rows) + 1
