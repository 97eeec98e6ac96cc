"""One process at a time works on a folder: a lock that ends with its process, in the folder's `.lock`."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from episodica.errors import FolderInUse, InputError
from episodica.files.door import Folder

LOCK = ".lock"


@contextmanager
def locked(folder: Folder, *, busy: str | None = None, unwritable: str | None = None) -> Iterator[None]:
    """Hold the folder, which is made where there is none.

    Where another process holds it, wait; or refuse at once with the message `busy`. Where it cannot be written to, the
    error is that of the system; or says so, with `unwritable` as what to do.
    """
    lock = FileLock(folder.path / LOCK)
    try:
        folder.open_to_continue(LOCK).close()  # a regular file without another name, or refused
        lock.acquire(timeout=-1 if busy is None else 0)
    except Timeout:
        raise FolderInUse(busy) from None
    except OSError as error:
        if unwritable is None:
            raise
        raise InputError(f"cannot write to {folder}: {error.strerror or error}; {unwritable}") from None
    try:
        yield
    finally:
        lock.release()
