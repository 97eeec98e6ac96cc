"""A file that is continued: killed at any moment, the same command goes on where it ended.

Until it is whole, the file is called `.NAME.DIGEST.unfinished`, where the digest is of what decides its content: it is
never continued by another model or with another setting. Lines are in the order of the images; those that are not what
would be written now, because a line is torn or images have come or gone, are cut off with all that follow.
"""

import csv
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

from episodica.errors import FolderInUse, InputError
from episodica.files.digest import digest_of
from episodica.files.door import Folder

UNFINISHED = ".unfinished"
LONGEST_LINE = 2**24  # bytes

T = TypeVar("T")
Written = TypeVar("Written", contravariant=True)


class Continued(Protocol[T]):
    """What was found on images, in files that are continued."""

    done: int  # images that were there already
    problems: int  # among them

    def add(self, found: Iterable[T], /) -> Iterator[T]:
        """Write each; those that were written are handed on."""
        ...


class Lines(Protocol[Written]):
    """How what was found on an image is written: a line each."""

    @property
    def header(self) -> str:
        """Before the first line."""
        ...

    def beginning(self, image: str, /) -> str:
        """Of the line of an image."""
        ...

    def line(self, found: Written, /) -> str: ...

    def is_problem(self, line: str, /) -> bool:
        """Whether the image of this line could not be read."""
        ...


class Kept(NamedTuple):
    """The first lines of a file, which are as they would be written."""

    end: int  # in bytes
    lines: int
    problems: int  # among them


def unfinished(path: Path, order: str) -> str:
    """What a file is called until it is whole. `order`: what decides its content."""
    return f".{path.name}.{digest_of(order.encode(), size=6)}{UNFINISHED}"


def check_free(path: Path, order: str) -> None:
    folder, name = Folder(path.parent), unfinished(path, order)
    if folder.has(path.name):
        raise InputError(f"{path} is there already: remove it, or name another file")
    others = [other for other in folder.files(f".{escape(path.name)}.*{UNFINISHED}") if other != name]
    if others:
        raise InputError(
            f"{path} was begun with another model or other settings: run that command again to go on with it, or "
            f"remove {path.parent / others[0]}"
        )


@contextmanager
def continued_file(path: Path, order: str) -> Iterator[IO[bytes]]:
    """To read and write anywhere, by this process alone. It gets its name where nothing is raised."""
    check_free(path, order)
    folder, name = Folder(path.parent), unfinished(path, order)
    with folder.open_to_continue(name, anywhere=True) as file:
        _hold(file, path)
        yield file
        file.flush()
        os.fsync(file.fileno())
        folder.rename(name, path.name)
        folder.sync()


def _hold(file: IO[bytes], path: Path) -> None:
    """Until the process ends."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FolderInUse(f"another process writes {path}: wait until it has ended") from None


def cut_behind_kept(file: IO[bytes], lines: Lines[Any], images: Iterable[str]) -> Kept:
    """What follows the last line that is as it would be written is gone, from the disk too."""
    kept = kept_lines(file, lines, images)
    file.seek(0)
    file.write(lines.header.encode())
    file.seek(kept.end)
    file.truncate()
    os.fsync(file.fileno())
    return kept


def kept_lines(file: IO[bytes], lines: Lines[Any], images: Iterable[str]) -> Kept:
    header, done, problems = lines.header.encode(), 0, 0
    end = len(header)
    file.seek(0)
    if file.read(end) != header:
        return Kept(end, 0, 0)
    for image in images:
        line = file.readline(LONGEST_LINE)
        if not line.endswith(b"\n") or b"\0" in line or not line.startswith(lines.beginning(image).encode()):
            break
        try:
            problem = lines.is_problem(line.decode())
        except (ValueError, LookupError, csv.Error):  # damaged
            break
        end, done, problems = end + len(line), done + 1, problems + problem
    return Kept(end, done, problems)
