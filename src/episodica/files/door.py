"""The door to folders that a stranger may have filled: models, runs and caches, and every folder inside them.

The threat. Somebody sends a model or a run, or shares the folder in which it lies. In place of a file there may be a
link to a file of yours, a pipe that never ends, a device, or a thousand gigabytes; in place of a folder there may be a
link to your home. Opening such a folder must not read, publish, change or remove anything outside it, nor hang, nor
fill the memory. What is inside may be damaged or a lie: that is for whoever parses it.

The rules, for everything below the folder that the user named (which may itself be a link: the user chose it):

- Callers say which names they expect; a name is one component and never a path, so no text from a file leads out.
- Links are never followed: each folder on the way is opened by its name in the one before, and the file in the last,
  so that nothing can be exchanged between the look and the use.
- Only regular files are opened, without waiting for a writer, and read only up to a size that the caller gives.
- A file takes its place as a whole and on the disk (`write`); what is continued in place has no second name elsewhere.
- Removing never follows: of a link, the link goes.

What is not as we would have written it raises `Refused`, which says what it is and what to do. A missing file is
Python's `FileNotFoundError`, with its full path.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from episodica.files import openat
from episodica.files.openat import Entry, Refused, component, expecting

__all__ = ["Entry", "Folder", "Refused"]


@dataclass(frozen=True)
class Folder:
    """`Folder(path)` is a folder that the user named; `folder / "name"` one inside, whether it is there or not."""

    root: Path
    inner: tuple[str, ...] = ()

    @classmethod
    def of(cls, place: "Path | Folder") -> "Folder":
        """A path is one that the user named."""
        return place if isinstance(place, Folder) else cls(place)

    def __truediv__(self, name: str) -> "Folder":
        return Folder(self.root, (*self.inner, component(name)))

    def __str__(self) -> str:
        return str(self.path)

    @property
    def path(self) -> Path:
        """For messages, and for libraries that take nothing else."""
        return self.root.joinpath(*self.inner)

    def exists(self) -> bool:
        try:
            with self.opened():
                return True
        except FileNotFoundError:
            return False

    def make(self, mode: int = 0o777) -> None:
        """With the folders on the way, each of them on the disk."""
        with self.opened(make=mode):
            pass

    def make_private(self) -> None:
        """A folder of this user that nobody else can enter; one of another user is refused."""
        with self.opened(make=0o700) as number:
            self._require_own(os.fstat(number), self.path)
            os.fchmod(number, 0o700)

    def entries(self) -> list[Entry]:
        """By name; none where there is no folder."""
        try:
            with self.opened() as number:
                return sorted(openat.scan(number), key=lambda entry: entry.name)
        except FileNotFoundError:
            return []

    def files(self, pattern: str = "*") -> list[str]:
        """The names of regular files, by a pattern as in a shell; what else has such a name is passed over."""
        return [entry.name for entry in self.entries() if entry.is_file and fnmatchcase(entry.name, pattern)]

    def folders(self) -> list[str]:
        return [entry.name for entry in self.entries() if entry.is_folder]

    def walk(self) -> Iterator[tuple["Folder", Entry]]:
        """Everything below, each with the folder that it is in; links are not followed."""
        for entry in self.entries():
            yield self, entry
            if entry.is_folder and len(self.inner) < openat.DEEPEST:
                yield from (self / entry.name).walk()

    def status(self, name: str) -> os.stat_result | None:
        """Of whatever has this name, itself and not what it links to; none where nothing has."""
        try:
            with self.opened() as number:
                return os.lstat(component(name), dir_fd=number)
        except FileNotFoundError:
            return None

    def has(self, name: str) -> bool:
        """Whether anything has this name: opening it tells whether it is a file."""
        return self.status(name) is not None

    def open(self, name: str) -> IO[bytes]:
        """A regular file, to read from."""
        with self.opened() as number, self._file(number, name):
            return os.fdopen(openat.open_file(number, component(name), os.O_RDONLY), "rb")

    def open_own(self, name: str) -> IO[bytes]:
        """One that this user wrote and nobody else can write to: for what is trusted without further checks."""
        file = self.open(name)
        status = os.fstat(file.fileno())
        try:
            self._require_own(status, self.path / name)
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise Refused(f"{self.path / name} can be written by other users, so it is not used: remove it")
        except Refused:
            file.close()
            raise
        return file

    def read(self, name: str, most: int) -> bytes:
        """All of a file, which is refused where it has more than `most` bytes."""
        with self.open(name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise Refused(f"{self.path / name} has {size:,} bytes and may have {most:,}: it is damaged or not ours")
            return file.read(size)

    def read_end(self, name: str, most: int) -> bytes:
        """The last bytes of a file, which may have more."""
        with self.open(name) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - most, 0))
            return file.read(most)

    def open_to_continue(self, name: str, *, anywhere: bool = False) -> IO[bytes]:
        """A file that grows in place, made where there is none: to read anywhere, to cut, and to write at its end; or
        `anywhere`."""
        flags, mode = (os.O_RDWR | os.O_CREAT, "r+b") if anywhere else (os.O_RDWR | os.O_CREAT | os.O_APPEND, "a+b")
        with self.opened(make=0o777) as number, self._file(number, name):
            file = os.fdopen(openat.open_file(number, component(name), flags), mode)
        if os.fstat(file.fileno()).st_nlink > 1:
            file.close()
            raise Refused(f"{self.path / name} is a file that has other names too: put a copy in its place")
        return file

    def write(self, name: str, write: Callable[[IO[bytes]], object], mode: int = 0o666) -> None:
        """Write beside the target, flush to the disk, then take its place; and flush the folder that says so."""
        part = openat.part_of(name)
        with self.opened(make=0o777) as number:
            with self._file(number, part):
                new = openat.new_file(number, part, mode)
            try:
                with os.fdopen(new, "wb") as file:
                    write(file)
                    file.flush()
                    os.fsync(file.fileno())
                with self._file(number, name):
                    os.replace(part, name, src_dir_fd=number, dst_dir_fd=number)
                os.fsync(number)
            except BaseException:
                openat.unlink(number, part)
                raise

    def write_bytes(self, name: str, data: bytes, mode: int = 0o666) -> None:
        self.write(name, lambda part: part.write(data), mode)

    def write_text(self, name: str, text: str) -> None:
        self.write_bytes(name, text.encode())

    def write_json(self, name: str, value: Any) -> None:
        self.write_text(name, json.dumps(value, indent=2) + "\n")

    def rename(self, name: str, new: str) -> None:
        """Within the folder; what had the new name is gone."""
        component(new)
        with self.opened() as number, self._file(number, name):
            os.replace(component(name), new, src_dir_fd=number, dst_dir_fd=number)

    def remove(self, name: str) -> None:
        """A file, or a link itself. Nothing happens where nothing has the name."""
        component(name)
        with suppress(FileNotFoundError), self.opened() as number, self._file(number, name):
            openat.unlink(number, name)

    def remove_tree(self, name: str) -> None:
        """Whatever has this name; a folder with all that is in it, without following any link."""
        component(name)
        with suppress(FileNotFoundError), self.opened() as number, self._file(number, name):
            openat.remove_tree(number, name)

    def remove_if_empty(self, name: str) -> None:
        """A folder with nothing in it; anything else stays."""
        component(name)
        with suppress(OSError), self.opened() as number:
            os.rmdir(name, dir_fd=number)

    def remove_leftovers(self) -> None:
        """Parts of files that a killed process left behind, here and in the folders inside."""
        with suppress(FileNotFoundError), self.opened() as number:
            openat.remove_parts(number)

    def remove_leftovers_of(self, name: str) -> None:
        """The same of one file, in a folder where other processes may be writing."""
        with suppress(FileNotFoundError), self.opened() as number:
            openat.remove_parts_of(number, name)

    @staticmethod
    def _require_own(status: os.stat_result, path: Path) -> None:
        if status.st_uid != os.geteuid():
            raise Refused(
                f"{path} belongs to another user (number {status.st_uid}), so it is not used: remove it, or use a "
                "folder of your own"
            )

    def _file(self, number: int, name: str) -> Any:
        return expecting("file", number, self.path / name)

    def sync(self) -> None:
        """The names in it are on the disk."""
        with self.opened() as number:
            os.fsync(number)

    @contextmanager
    def opened(self, make: int | None = None) -> Iterator[int]:
        """The folder's descriptor, each folder below the root by its name in the one above; made with a mode."""
        if make is not None:
            openat.make_named(self.root, make)
        with ExitStack() as way:
            number, path = way.enter_context(openat.opened(self.root)), self.root
            for name in self.inner:
                path = path / name
                with expecting("folder", number, path):
                    if make is not None:
                        openat.make_inside(number, name, make)
                    number = way.enter_context(openat.opened(name, number))
            yield number
