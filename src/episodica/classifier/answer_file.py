"""Answers in a file that is continued: killed at any moment, the same command goes on behind the last whole line.

Until it is whole, the file is called `.NAME.DIGEST.unfinished`, where the digest is of what decides the answers: it is
never continued by another model or with another setting. Lines are in the order of the images; those that are not what
would be written now, because a line is torn or images have come or gone, are cut off with all that follow.
"""

import csv
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from itertools import islice
from pathlib import Path
from typing import IO

from episodica.classifier.answer_lines import Csv, JsonLines, Lines
from episodica.classifier.classify import Answered
from episodica.errors import FolderInUse, InputError
from episodica.files.digest import digest_of
from episodica.files.door import Folder

KINDS: dict[str, type[Lines]] = {".csv": Csv, ".jsonl": JsonLines}
UNFINISHED = ".unfinished"
LONGEST_LINE = 2**24  # bytes
AT_ONCE = 50  # lines that are written together


def kind_of(path: Path) -> Lines:
    if path.suffix not in KINDS:
        raise InputError(f"--out {path}: its name must end with one of {', '.join(KINDS)}, which says what is written")
    return KINDS[path.suffix]()


@dataclass
class AnswerFile:
    file: IO[bytes]
    lines: Lines
    done: int  # lines that were there already
    problems: int  # among them

    def add(self, answers: Iterable[Answered]) -> Iterator[Answered]:
        """Write each; those that were written are handed on."""
        left = iter(answers)
        while some := list(islice(left, AT_ONCE)):
            self.file.write("".join(map(self.lines.line, some)).encode())
            self.file.flush()
            yield from some


@contextmanager
def answer_file(path: Path, order: str, images: Iterable[str]) -> Iterator[AnswerFile]:
    """`order`: what decides the answers; `images`: all of them, in order. It gets its name with the last answer."""
    lines = kind_of(path)
    folder, name = Folder(path.parent), f".{path.name}.{digest_of(order.encode(), size=6)}{UNFINISHED}"
    if folder.has(path.name):
        raise InputError(f"{path} is there already: remove it, or name another file")
    others = [other for other in folder.files(f".{escape(path.name)}.*{UNFINISHED}") if other != name]
    if others:
        raise InputError(
            f"{path} was begun with another model or other settings: run that command again to go on with it, or "
            f"remove {path.parent / others[0]}"
        )
    with folder.open_to_continue(name) as file:
        _hold(file, path)
        yield _kept(file, lines, images)
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


def _kept(file: IO[bytes], lines: Lines, images: Iterable[str]) -> AnswerFile:
    """The file cut behind the last line that is as it would be written."""
    header, done, problems = lines.header.encode(), 0, 0
    file.seek(0)
    if file.read(len(header)) != header:
        file.truncate(0)
        file.write(header)
    end = len(header)
    file.seek(end)
    for image in images:
        line = file.readline(LONGEST_LINE)
        if not line.endswith(b"\n") or not line.startswith(lines.beginning(image).encode()):
            break
        try:
            problem = lines.is_problem(line.decode())
        except (ValueError, LookupError, csv.Error):  # damaged
            break
        end, done, problems = end + len(line), done + 1, problems + problem
    file.seek(end)
    file.truncate()
    return AnswerFile(file, lines, done, problems)
