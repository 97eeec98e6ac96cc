"""Embeddings in a NumPy array on the disk that is continued, and beside it a CSV file that names the image of each row.

A line of the CSV file is written when its row is on the disk, so lines vouch for rows, whatever ends the process or the
machine. Of the two files the array gets its name last: where it is, both are whole.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from episodica.classifier.answer_lines import RowNames
from episodica.classifier.continued_file import check_free, continued_file, cut_behind_kept, kept_lines, unfinished
from episodica.classifier.embed import EmbeddedImage
from episodica.errors import InputError
from episodica.files.door import Folder

NUMBER = np.dtype("<f4")
MOST_WAITING, LONGEST_WAIT = 1000, 1.0  # rows, and seconds, until they are made sure to be on the disk
AT_ONCE = 50  # rows that are written together


def check_name(path: Path) -> None:
    if path.suffix != ".npy":
        raise InputError(f"--out {path}: its name must end with .npy, which is what is written")


def names_beside(path: Path) -> Path:
    """The file that names the image of each row."""
    return path.with_suffix(".csv")


@dataclass
class VectorFile:
    vectors: IO[bytes]
    names: IO[bytes]
    width: int
    done: int  # rows that were there already
    problems: int  # among them

    def add(self, images: Iterable[EmbeddedImage]) -> Iterator[EmbeddedImage]:
        """Write each; those that are on the disk are handed on."""
        left, waiting, since = iter(images), list[EmbeddedImage](), time.monotonic()
        while some := list(islice(left, AT_ONCE)):
            self.vectors.write(self._rows(some))
            waiting += some
            if len(waiting) >= MOST_WAITING or time.monotonic() - since > LONGEST_WAIT:
                yield from self._named(waiting)
                waiting, since = [], time.monotonic()
        if waiting:
            yield from self._named(waiting)

    def _rows(self, images: Sequence[EmbeddedImage]) -> bytes:
        """Of an image that cannot be read: no numbers."""
        rows = np.full((len(images), self.width), np.nan, NUMBER)
        for row, image in zip(rows, images, strict=True):
            if image.vector is not None:
                row[:] = image.vector
        return rows.tobytes()

    def _named(self, images: Sequence[EmbeddedImage]) -> Sequence[EmbeddedImage]:
        self.vectors.flush()
        os.fsync(self.vectors.fileno())
        self.names.write("".join(map(RowNames().line, images)).encode())
        self.names.flush()
        return images


@contextmanager
def vector_file(path: Path, order: str, images: Iterable[str], total: int, width: int) -> Iterator[VectorFile]:
    """`order`: what decides the vectors; `images`: all of them, in order; `total`: so many."""
    check_name(path)
    check_free(path, order)
    names, header, row = names_beside(path), _header(total, width), width * NUMBER.itemsize
    named_before = _is_between_names(path, names, order)
    if not named_before:
        check_free(names, order)
    with ExitStack() as held:
        vectors = held.enter_context(continued_file(path, order))
        there = islice(images, _rows_in(vectors, header, row))
        if named_before:
            file = held.enter_context(Folder(names.parent).open(names.name))
            kept = kept_lines(file, RowNames(), there)
            if kept.lines < total or file.read(1):
                raise InputError(f"{names} is there already: remove it, or name another file")
        else:
            file = held.enter_context(continued_file(names, order))
            kept = cut_behind_kept(file, RowNames(), there)
        vectors.seek(0)
        vectors.write(header)
        vectors.seek(len(header) + kept.lines * row)
        vectors.truncate()
        yield VectorFile(vectors, file, width, kept.lines, kept.problems)


def _is_between_names(path: Path, names: Path, order: str) -> bool:
    """Whether a process ended when one file had its name and the other did not."""
    folder = Folder(path.parent)
    return folder.has(names.name) and folder.has(unfinished(path, order)) and not folder.has(unfinished(names, order))


def _header(total: int, width: int) -> bytes:
    """Its length does not depend on the number of rows."""
    file = BytesIO()
    shape = {"descr": NUMBER.str, "fortran_order": False, "shape": (total, width)}
    np.lib.format.write_array_header_1_0(file, shape)
    return file.getvalue()


def _rows_in(file: IO[bytes], header: bytes, row: int) -> int:
    """Whole ones; none where the file is not an array of such rows, be they more or less than they will be."""
    file.seek(0)
    beginning = header[: header.index(b"(")]
    if file.read(len(beginning)) != beginning:
        return 0
    return max(os.fstat(file.fileno()).st_size - len(header), 0) // row
