"""The CSV file that says what went where and why, and from which everything can be put back.

Paths must come back exactly as they were, and a spreadsheet must not run them. So bytes that are no printable text, `%`
itself and a first character that begins a formula are written as `%XX`, as in addresses of the web.
"""

import csv
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import IO
from urllib.parse import quote, unquote_to_bytes

from episodica.errors import InputError
from episodica.files.foreign_text import FORMULA, spreadsheet_cell

COLUMNS = ("image", "to", "done", "class", "probability", "strangeness", "limit", "why", "bytes", "digest")
LONGEST_LINE = 1 << 16
LONGEST_NAME = 1000  # of a class, in characters: a line stays one that can be read


@dataclass(frozen=True)
class Line:
    """One image: where it came from, and its place below the folder of the file, where it has one."""

    image: str
    to: str
    done: str  # copied, linked or moved; left or double where it has none
    class_name: str
    probability: float | None
    strangeness: float | None
    limit: float | None
    why: str
    bytes: int
    digest: str


def header() -> str:
    return _text([COLUMNS])


def written(lines: Iterable[Line]) -> str:
    return _text(
        (
            path_cell(line.image),
            path_cell(line.to),
            line.done,
            spreadsheet_cell(line.class_name[:LONGEST_NAME]),
            *(_number(value) for value in (line.probability, line.strangeness, line.limit)),
            spreadsheet_cell(line.why),
            line.bytes,
            line.digest,
        )
        for line in lines
    )


def read(file: IO[str], name: str) -> Iterator[tuple[str, str, str, str]]:
    """Of each image that was put somewhere: its old place, its new one, how it came there, and its digest."""
    try:
        yield from _read(file, name)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{name} is no list that `sort` wrote ({error}): restore the file from a copy") from None


def _read(file: IO[str], name: str) -> Iterator[tuple[str, str, str, str]]:
    rows = csv.DictReader(iter(lambda: file.readline(LONGEST_LINE), ""))
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise InputError(f"{name} is no list that `sort` wrote: its first line is not {','.join(COLUMNS)}")
    for number, row in enumerate(rows, 2):
        image, to, done, digest = (row[column] for column in ("image", "to", "done", "digest"))
        if not all(isinstance(cell, str) for cell in (image, to, done, digest)):
            raise InputError(f"{name}, line {number}, is not whole: restore the file from a copy")
        if to:
            yield path_of(image), path_of(to), done, digest


def path_cell(path: str) -> str:
    """A path as text that is safe everywhere, and means the path alone."""
    text = "".join(c if c.isprintable() and c != "%" else quote(os.fsencode(c), safe="") for c in path)
    if text.lstrip().startswith(FORMULA):
        lead = len(text) - len(text.lstrip())
        text = f"{text[:lead]}%{ord(text[lead]):02X}{text[lead + 1 :]}"
    return text


def path_of(cell: str) -> str:
    return os.fsdecode(unquote_to_bytes(cell))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _text(rows: Iterable[Iterable[object]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
