"""Files of run folders, read with care: a folder may be growing, half copied, damaged, or from another source."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

BLOCK = 1 << 20
MOST_LINES = 128 * BLOCK  # bytes of a file: a hundred times what a long run writes
A_LOOK = 4 * BLOCK  # bytes that are read at once
REMEMBERED = 1024  # bytes before the place that was reached


def open_plain(path: Path) -> IO[bytes]:
    """A regular file, not a link (which could lead anywhere) nor a pipe (which could block)."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise OSError(f"{path} is not a regular file")
    return file


def read_some(path: Path, most: int, *, last: bool = False) -> bytes:
    """The first or last `most` bytes."""
    with open_plain(path) as file:
        if last:
            file.seek(max(os.fstat(file.fileno()).st_size - most, 0))
        return file.read(most)


class Stamp(NamedTuple):
    """Tells whether a file is as it was."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> "Stamp | None":
        try:
            found = path.lstat()
        except OSError:
            return None
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


class Lines:
    """The whole lines of a growing file, each once; from the beginning again where the file was cut or replaced."""

    def __init__(self, path: Path) -> None:
        self.path, self.offset = path, 0
        self.stamp: Stamp | None = None
        self._before, self._more = b"", False

    @property
    def too_long(self) -> bool:
        return self.offset >= MOST_LINES

    def fresh(self) -> tuple[bool, list[bytes]]:
        """Whether all earlier lines are void, and lines since: as many as one look has time for."""
        stamp = Stamp.of(self.path)
        if stamp == self.stamp and not self._more:
            return False, []
        replaced = self.stamp is not None and (stamp is None or stamp.inode != self.stamp.inode)
        self.stamp = stamp
        try:
            with open_plain(self.path) as file:
                anew = replaced or not self._goes_on(file)
                if anew:
                    self.offset, self._before = 0, b""
                return anew, list(self._read(file))
        except OSError:
            anew, self._more = self.offset > 0, False
            self.offset, self._before = 0, b""
            return anew, []

    def _goes_on(self, file: IO[bytes]) -> bool:
        """A run that is continued cuts its log at a checkpoint and may have grown past our place since.

        Its steps are the same but for their seconds, so that the lines just before our place differ.
        """
        file.seek(self.offset - len(self._before))
        return file.read(len(self._before)) == self._before

    def _read(self, file: IO[bytes]) -> Iterator[bytes]:
        file.seek(self.offset)
        ends = min(self.offset + A_LOOK, MOST_LINES)
        self._more = False
        while block := file.read(BLOCK):
            if self.offset >= ends:
                self._more = not self.too_long
                return
            whole = block.rfind(b"\n") + 1
            if not whole and len(block) < BLOCK:
                return
            taken = block[: whole or BLOCK]  # no line is as long as a block: what is, is damaged
            self.offset += len(taken)
            self._before = (self._before + taken)[-REMEMBERED:]
            file.seek(self.offset)
            yield from taken.splitlines()
