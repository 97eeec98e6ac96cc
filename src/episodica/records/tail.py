"""Files of run folders, read with care: a folder may be growing, half copied, damaged, or from another source."""

from collections.abc import Iterator
from typing import IO, NamedTuple

from episodica.files.door import Folder, Refused

BLOCK = 1 << 20
MOST_LINES = 128 * BLOCK  # bytes of a file: a hundred times what a long run writes
A_LOOK = 4 * BLOCK  # bytes that are read at once
REMEMBERED = 1024  # bytes before the place that was reached


class Stamp(NamedTuple):
    """Tells whether a file is as it was."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, folder: Folder, name: str) -> "Stamp | None":
        try:
            found = folder.status(name)
        except (OSError, Refused):
            return None
        return None if found is None else cls(found.st_ino, found.st_size, found.st_mtime_ns)


class Lines:
    """The whole lines of a growing file, each once; from the beginning again where the file was cut or replaced."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.name, self.offset = folder, name, 0
        self.stamp: Stamp | None = None
        self._before, self._more = b"", False

    @property
    def too_long(self) -> bool:
        return self.offset >= MOST_LINES

    def fresh(self) -> tuple[bool, list[bytes]]:
        """Whether all earlier lines are void, and lines since: as many as one look has time for."""
        stamp = Stamp.of(self.folder, self.name)
        if stamp == self.stamp and not self._more:
            return False, []
        replaced = self.stamp is not None and (stamp is None or stamp.inode != self.stamp.inode)
        self.stamp = stamp
        try:
            with self.folder.open(self.name) as file:
                anew = replaced or not self._goes_on(file)
                if anew:
                    self.offset, self._before = 0, b""
                return anew, list(self._read(file))
        except (OSError, Refused):
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
