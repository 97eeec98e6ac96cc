"""A table as Markdown."""

from collections.abc import Sequence

from episodica.report.cells import Cell, Table

ESCAPED = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;", **{mark: f"\\{mark}" for mark in "\\|`*_[]#~$"}})


def markdown(table: Table) -> str:
    heading = [table.first, *["runs"] * table.noted, *table.columns]
    rows = [[escape(row.name), *[escape(row.note)] * table.noted, *map(_cell, row.cells)] for row in table.rows]
    return _lines([heading, *rows])


def _cell(cell: Cell) -> str:
    number = f"**{cell.number}**" if cell.best else escape(cell.number)
    return " ".join(part for part in (number, cell.plus_minus, cell.beside) if part)


def _lines(rows: Sequence[Sequence[str]]) -> str:
    heading, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([heading, "|---" * len(rows[0]) + "|", *body]) + "\n"


def escape(text: str) -> str:
    """Names come from folders: neither a column, nor a line, nor markup may begin in them."""
    return " ".join(text.translate(ESCAPED).split())
