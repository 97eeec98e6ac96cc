import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.files.foreign_text import printable, spreadsheet_cell


@given(st.text(st.characters()))
def test_whatever_it_is_it_can_be_printed(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    shown.encode()
    assert printable(text, lines=True).replace("\n", "").isprintable()


@pytest.mark.parametrize("text", ["猫", "a b", "'quoted'", "", "[red]"])
def test_what_is_harmless_stays(text: str) -> None:
    assert printable(text) == spreadsheet_cell(text) == text


@pytest.mark.parametrize("text", ["\x1b[2J", "\x9b31m", "a\rb", "\u202egnp.exe", "\udcff", "\0", "a\nb"])
def test_what_steers_a_terminal_goes(text: str) -> None:
    assert "�" in printable(text)


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\x0b=1"]
)
def test_cells_that_spreadsheets_would_run(text: str) -> None:
    assert spreadsheet_cell(text).startswith("'")


@given(st.lists(st.text(), min_size=1))
def test_cells_stay_one_line_each(cells: list[str]) -> None:
    file = io.StringIO()
    csv.writer(file).writerow(map(spreadsheet_cell, cells))
    assert next(csv.reader(file.getvalue().splitlines())) == [spreadsheet_cell(cell) for cell in cells]
