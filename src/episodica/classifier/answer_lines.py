"""What was found on images as text, a line each: answers as CSV and JSON Lines, and CSV that names the rows of vectors.

A line tells whose it is by how it begins, so that a file of them can be continued.
"""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from io import StringIO
from typing import ClassVar, Generic, TypeVar

from episodica.classifier.classify import Answered
from episodica.classifier.embed import EmbeddedImage
from episodica.files.foreign_text import spreadsheet_cell

T = TypeVar("T")


class CsvLines(ABC, Generic[T]):
    columns: ClassVar[tuple[str, ...]]  # the first is the image, one is the error

    @property
    def header(self) -> str:
        return _row(self.columns)

    def beginning(self, image: str) -> str:
        return _row([spreadsheet_cell(image), ""]).removesuffix("\r\n")

    def line(self, found: T) -> str:
        return _row(self.cells(found))

    @abstractmethod
    def cells(self, found: T) -> Iterable[object]:
        """A value for each column."""

    def is_problem(self, line: str) -> bool:
        (row,) = csv.reader([line])
        return bool(row[self.columns.index("error")])


class Csv(CsvLines[Answered]):
    columns = ("image", "class", "probability", "unknown", "error", "strangeness", "limit")

    def cells(self, found: Answered) -> Iterable[object]:
        row = found.to_json()
        texts = (found.image, row["class"] or "", found.error or "")
        image, name, error = map(spreadsheet_cell, texts)
        return image, name, row["probability"], row["unknown"], error, row["strangeness"], row["limit"]


class RowNames(CsvLines[EmbeddedImage]):
    columns = ("image", "error")

    def cells(self, found: EmbeddedImage) -> Iterable[object]:
        return map(spreadsheet_cell, (found.image, found.error or ""))


class JsonLines:
    header = ""

    def beginning(self, image: str) -> str:
        return json.dumps({"image": image}).removesuffix("}") + ", "

    def line(self, found: Answered) -> str:
        return json.dumps(found.to_json()) + "\n"

    def is_problem(self, line: str) -> bool:
        return "error" in json.loads(line)


def _row(cells: Iterable[object]) -> str:
    text = StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()
