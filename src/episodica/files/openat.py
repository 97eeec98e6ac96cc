"""The steps of the door, each in a folder that is open already: what has the folder's name since does not matter."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from episodica.errors import InputError

DEEPEST = 32  # folders inside each other; ours are three
MOST_ENTRIES = 1_000_000  # in one folder

_NEEDED = ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK")


def check_system() -> None:
    """Without these, a link could be followed: there is no other way to open a stranger's folder."""
    missing = [flag for flag in _NEEDED if not hasattr(os, flag)]
    missing += ["dir_fd"] if os.open not in os.supports_dir_fd else []
    if missing:
        raise InputError(
            f"this system cannot open files relative to open folders ({', '.join(missing)}), which keeps links from "
            "being followed: use Linux or macOS"
        )


check_system()

_NAMED = os.O_CLOEXEC
_INSIDE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no link is followed, and no pipe waited for
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_WRONG_KIND = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EINVAL, errno.EEXIST, errno.EMLINK}
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


class Refused(InputError):
    """Something in a folder is not what we would have written there, and was left alone."""


class Entry(NamedTuple):
    """Something in a folder, as it is and not as what it links to."""

    name: str
    status: os.stat_result

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


def component(name: str) -> str:
    """The name, where it is one and not a path."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise Refused(f"{name!r} is no name of a file: the folder is damaged, or made to lead elsewhere")
    return name


@contextmanager
def expecting(wanted: Literal["file", "folder"], parent: int, path: Path) -> Iterator[None]:
    """Errors name the whole path; where something else has the name of a file or a folder, they say what it is."""
    try:
        yield
    except OSError as error:
        kind = _kind(parent, path.name) if error.errno in _WRONG_KIND else None
        if kind not in (None, wanted):
            raise Refused(
                f"{path} is a {kind}, and only a {wanted} is expected there: remove it, or put a {wanted} in its place"
            ) from None
        error.filename = str(path)
        raise


def _kind(parent: int, name: str) -> str | None:
    try:
        return _KINDS.get(stat.S_IFMT(os.lstat(name, dir_fd=parent).st_mode), "device")
    except OSError:
        return None


@contextmanager
def opened(folder: Path | str, parent: int | None = None) -> Iterator[int]:
    """A folder that the user named, or one inside another, which is no link."""
    number = os.open(folder, _FOLDER | (_NAMED if parent is None else _INSIDE), dir_fd=parent)
    try:
        yield number
    finally:
        os.close(number)


def open_file(parent: int, name: str, flags: int) -> int:
    """A regular file."""
    number = os.open(name, flags | _INSIDE, 0o666, dir_fd=parent)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "is not a regular file")
    return number


def new_file(parent: int, name: str, mode: int) -> int:
    """One that nobody else has; what had its name is gone."""
    unlink(parent, name)
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _INSIDE, mode, dir_fd=parent)


def unlink(parent: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


def make_named(folder: Path, mode: int) -> None:
    """With the folders above it, each of them on the disk: a new name may be gone after a power cut."""
    if not folder.is_dir():
        make_named(folder.parent, 0o777)
        with suppress(FileExistsError):
            folder.mkdir(mode)
        with opened(folder.parent) as above:
            os.fsync(above)


def make_inside(parent: int, name: str, mode: int) -> None:
    try:
        os.mkdir(name, mode, dir_fd=parent)
    except FileExistsError:
        return
    os.fsync(parent)


def scan(number: int) -> list[Entry]:
    found: list[Entry] = []
    with os.scandir(number) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # removed just now
                found.append(Entry(entry.name, entry.stat(follow_symlinks=False)))
            if len(found) > MOST_ENTRIES:
                raise Refused(f"a folder has more than {MOST_ENTRIES:,} entries: it is damaged or not ours")
    return found


def remove_tree(parent: int, name: str, deepest: int = DEEPEST) -> None:
    """Whatever has this name; a folder with all that is in it, and of a link the link."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
        return unlink(parent, name)
    with _deeper(parent, name, deepest) as inside:
        for entry in scan(inside):
            remove_tree(inside, entry.name, deepest - 1)
    return os.rmdir(name, dir_fd=parent)


def remove_parts(number: int, deepest: int = DEEPEST) -> None:
    """Of files that were never finished, in the folder and in those inside."""
    for entry in scan(number):
        if entry.is_folder:
            with _deeper(number, entry.name, deepest) as inside:
                remove_parts(inside, deepest - 1)
        elif is_part(entry.name):
            unlink(number, entry.name)


def remove_parts_of(number: int, name: str) -> None:
    """Of one file, by processes that have ended: others may be at work in the same folder."""
    begin, end = f".{component(name)}.", ".part"
    for entry in scan(number):
        writer = entry.name.removeprefix(begin).removesuffix(end)
        is_part_of_it = entry.name == f"{begin}{writer}{end}" and writer.isdecimal() and not entry.is_folder
        if is_part_of_it and not _is_running(int(writer)):
            unlink(number, entry.name)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's
    return True


@contextmanager
def _deeper(parent: int, name: str, deepest: int) -> Iterator[int]:
    if not deepest:
        raise Refused(f"folders lie more than {DEEPEST} deep in each other: remove them by hand")
    with opened(name, parent) as number:
        yield number


def part_of(name: str) -> str:
    """What a file is called until it is whole."""
    return f".{component(name)}.{os.getpid()}.part"


def is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith(".part")
