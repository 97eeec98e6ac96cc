"""Paths of images from another program, one after another: plain lines, or CSV with a column of them."""

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TextIO

from episodica.errors import InputError

COLUMNS = ("image", "path", "file", "filename", "file_name", "name")  # that a header may call them
LONGEST = 1 << 16  # characters of a line


def lines_of(stream: TextIO) -> Iterator[str]:
    """Never more of a line than is looked at: a stream may have no line breaks, and no end."""
    return iter(lambda: stream.readline(LONGEST + 1), "")


def read_paths(lines: Iterable[str]) -> Iterator[Path]:
    """The first line tells: a header that names a column of paths makes it CSV; else every line is a path."""
    try:
        yield from _read_paths(lines)
    except csv.Error as error:
        raise InputError(f"standard input cannot be read as CSV ({error}): is a quotation mark not closed?") from None


def _read_paths(lines: Iterable[str]) -> Iterator[Path]:
    rest = _bounded(lines)
    first = next(rest, None)
    if first is None:
        return
    header = [cell.strip().casefold() for cell in next(csv.reader([first.removeprefix("\ufeff")]), [])]
    column = next((name for name in COLUMNS if name in header), None)
    if column is None:
        yield from (Path(line) for line in chain([first], rest) if line.strip())
        return
    place = header.index(column)
    for number, row in enumerate(csv.reader(f"{line}\n" for line in rest), 2):
        if not row:
            continue
        if len(row) <= place or not row[place]:
            raise InputError(
                f"line {number} of standard input has no {column}: give each line as many cells as the first"
            )
        yield Path(row[place])


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST:
            raise InputError(
                f"line {number} of standard input has more than {LONGEST:,} characters: is it a list of paths?"
            )
        yield line.rstrip("\r\n")
