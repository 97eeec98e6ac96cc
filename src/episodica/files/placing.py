"""A file gets a place in another folder, and never in place of another: copied, linked or moved to a name that is free.

Every step can be the last one. What is asked for again after that is done as if it had not been begun: a file that is
there already with the right content counts, parts of files are written anew, and what moves is removed from its old
place only when all of it is in the new one and on the disk.
"""

import errno
import os
import stat
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple

from episodica.files import openat
from episodica.files.door import Folder
from episodica.files.openat import component

How = Literal["copy", "link", "move"]

PIECE = 1 << 20  # bytes
NO_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class Taken(Exception):
    """Something else has the name."""


class Changed(Exception):
    """The file is not the one that was looked at."""


@dataclass(frozen=True)
class Spot:
    """A name in a folder, whether anything has it or not."""

    folder: Folder
    name: str

    def __str__(self) -> str:
        return str(self.folder.path / self.name)

    @property
    def status(self) -> os.stat_result | None:
        return self.folder.status(self.name)

    def digest(self) -> str | None:
        """Of the file's bytes; none where there is no file."""
        try:
            with self.folder.open(self.name) as file:
                found = blake2b(digest_size=16)
                while piece := file.read(PIECE):
                    found.update(piece)
                return found.hexdigest()
        except FileNotFoundError:
            return None


class Seen(NamedTuple):
    """What a file was when it was looked at."""

    bytes: int
    modified: int  # in nanoseconds
    digest: str


def place(how: How, source: Spot, target: Spot, seen: Seen) -> None:
    """The source at the target as well; or there alone, where it is moved."""
    status, digest = target.status, seen.digest
    if status is not None and _is_reserved(status, target, digest):
        target.folder.remove(target.name)
    elif status is not None:
        if not stat.S_ISREG(status.st_mode) or target.digest() != digest:
            raise Taken
        target.folder.remove(_part(digest))  # it may have got its name just before the end
        return _remove_moved(how, source, target, digest)
    here = source.status
    if here is None or (here.st_size, here.st_mtime_ns) != seen[:2]:
        raise Changed
    if how == "copy" or not _link(source, target, needed=how == "link"):
        _copy(source, target, digest)
    return _remove_moved(how, source, target, digest)


def _is_reserved(status: os.stat_result, target: Spot, digest: str) -> bool:
    """Whether `_name` has begun: an empty file has the name, and the part that is to take it is there, too."""
    return stat.S_ISREG(status.st_mode) and not status.st_size and target.folder.has(_part(digest))


def _link(source: Spot, target: Spot, *, needed: bool) -> bool:
    """The same file under a second name; whether that is possible, or an error where it is needed."""
    with source.folder.opened() as here, target.folder.opened(make=0o777) as there:
        try:
            os.link(source.name, target.name, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
        except FileExistsError:
            raise Taken from None
        except OSError as error:
            if needed or error.errno not in NO_LINK:
                raise
            return False
    return True


def _copy(source: Spot, target: Spot, digest: str) -> None:
    """With its time and its permissions, and on the disk. A file that is another one by now is not copied."""
    part = _part(digest)
    with source.folder.open(source.name) as file, target.folder.opened(make=0o777) as there:
        status = os.fstat(file.fileno())
        new = openat.new_file(there, part, 0o600)
        try:
            found = blake2b(digest_size=16)
            with os.fdopen(new, "wb") as copy:
                while piece := file.read(PIECE):
                    found.update(piece)
                    copy.write(piece)
                copy.flush()
                os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
                os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode) & 0o777)
                os.fsync(copy.fileno())
            if found.hexdigest() != digest:
                raise Changed
            _name(there, part, component(target.name))
        finally:
            openat.unlink(there, part)


def _part(digest: str) -> str:
    """What a copy is called until it is whole."""
    return f".{digest}.part"


def _name(folder: int, part: str, name: str) -> None:
    """A finished part gets its name, which nothing else may have."""
    try:
        os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise Taken from None
    except OSError as error:
        if error.errno not in NO_LINK:
            raise
    else:
        return
    try:  # a file system without links: an empty file of ours keeps the name until the part takes it
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder))
    except FileExistsError:
        raise Taken from None
    os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)


def _remove_moved(how: How, source: Spot, target: Spot, digest: str) -> None:
    """From its old place, if what is there is what was moved: the same file, or one with the same content."""
    if how != "move":
        return
    here, there = source.status, target.status
    if here is None:
        return
    assert there is not None, "it was put there just now"
    same_file = (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
    if not same_file and source.digest() != digest:
        raise Changed
    if same_file and _is_one_entry(source, target, here.st_nlink):
        return
    target.folder.sync()
    try:
        source.folder.remove(source.name)
    except PermissionError:  # it cannot be moved: then it is not
        target.folder.remove(target.name)
        raise


def _is_one_entry(source: Spot, target: Spot, names: int) -> bool:
    """Whether two ways lead to one name, by a link to its folder or on a system that reads names in its own way: then
    removing one is removing both."""
    with source.folder.opened() as here, target.folder.opened() as there:
        return os.path.sameopenfile(here, there) and (source.name == target.name or names == 1)
