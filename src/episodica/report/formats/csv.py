"""A table as CSV with a line for each number, unrounded: ours, both intervals, the paper's and place, difference."""

import csv
from io import StringIO

from episodica.files.foreign_text import spreadsheet_cell
from episodica.report.cells import Cell, Table

COLUMNS = ("column", "value", "interval_over_repeats", "interval_over_episodes", "paper", "difference", "paper_source")


def as_csv(table: Table) -> str:
    """Cells that hold a word, not a number, have it in the column `value`."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([table.first, *["runs"] * table.noted, *COLUMNS])
    for row in table.rows:
        for heading, cell in zip(table.columns, row.cells, strict=True):
            if cell != Cell():
                name, note, column = map(spreadsheet_cell, (row.name, row.note, heading))
                writer.writerow([name, *[note] * table.noted, column, *_values(cell)])
    return text.getvalue()


def _values(cell: Cell) -> list[object]:
    value = spreadsheet_cell(cell.word) if cell.value is None else cell.value
    return [value, cell.over_repeats, cell.over_episodes, cell.paper, cell.difference, spreadsheet_cell(cell.source)]
