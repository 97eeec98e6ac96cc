"""Answers as text, a line each: CSV and JSON Lines.

A line tells whose it is by how it begins, so that a file of them can be continued.
"""

import csv
import json
from collections.abc import Iterable
from io import StringIO
from typing import Protocol

from episodica.classifier.classify import Answered
from episodica.files.foreign_text import spreadsheet_cell

COLUMNS = ("image", "class", "probability", "unknown", "error", "strangeness", "limit")


class Lines(Protocol):
    header: str  # before the first line

    def beginning(self, image: str, /) -> str:
        """Of the line of an image."""
        ...

    def line(self, answered: Answered, /) -> str: ...

    def is_problem(self, line: str, /) -> bool:
        """Whether the image of this line could not be read."""
        ...


class Csv:
    header = ",".join(COLUMNS) + "\r\n"

    def beginning(self, image: str) -> str:
        return _row([spreadsheet_cell(image), ""]).removesuffix("\r\n")

    def line(self, answered: Answered) -> str:
        row = answered.to_json()
        texts = (answered.image, row["class"] or "", answered.error or "")
        image, name, error = map(spreadsheet_cell, texts)
        return _row([image, name, row["probability"], row["unknown"], error, row["strangeness"], row["limit"]])

    def is_problem(self, line: str) -> bool:
        (row,) = csv.reader([line])
        return bool(row[COLUMNS.index("error")])


class JsonLines:
    header = ""

    def beginning(self, image: str) -> str:
        return json.dumps({"image": image}).removesuffix("}") + ", "

    def line(self, answered: Answered) -> str:
        return json.dumps(answered.to_json()) + "\n"

    def is_problem(self, line: str) -> bool:
        return "error" in json.loads(line)


def _row(cells: Iterable[object]) -> str:
    text = StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()
