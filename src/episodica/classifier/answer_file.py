"""Answers in a file that is continued, a line for each image."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from episodica.classifier.answer_lines import Csv, JsonLines
from episodica.classifier.classify import Answered
from episodica.classifier.continued_file import Lines, continued_file, cut_behind_kept
from episodica.errors import InputError

KINDS: dict[str, type[Csv] | type[JsonLines]] = {".csv": Csv, ".jsonl": JsonLines}
AT_ONCE = 50  # lines that are written together


def kind_of(path: Path) -> Lines[Answered]:
    if path.suffix not in KINDS:
        raise InputError(f"--out {path}: its name must end with one of {', '.join(KINDS)}, which says what is written")
    return KINDS[path.suffix]()


@dataclass
class AnswerFile:
    file: IO[bytes]
    lines: Lines[Answered]
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
    with continued_file(path, order) as file:
        kept = cut_behind_kept(file, lines, images)
        yield AnswerFile(file, lines, kept.lines, kept.problems)
