"""What the image cache takes on the disk, and emptying it.

Entries of files that have changed since, or are gone, are not removed by themselves: nothing tells whether they will be
back. Whoever writes into a folder of the cache holds its `.lock`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from episodica.data.cache import in_cache
from episodica.errors import FolderInUse
from episodica.files.cache_folder import cache_folder
from episodica.files.door import Folder
from episodica.files.lock import locked

_OURS = re.compile(
    r"(.+)-\d+px-[0-9a-f]{16}|unpacked-\w+|remote-[\w+]+-[0-9a-f]{16}"
)  # nothing else is removed, whatever the folder is


class Entry(NamedTuple):
    """The images of a set at one size, what was fetched from an address, or what a killed process had unpacked."""

    folder: Path
    dataset: str | None
    size: int  # in bytes


def entries() -> list[Entry]:
    with in_cache(cache_folder()):
        return list(_entries()) if cache_folder().is_dir() else []


def _entries() -> Iterator[Entry]:
    cache = Folder(cache_folder())
    for name in cache.folders():
        if match := _OURS.fullmatch(name):
            yield Entry(cache_folder() / name, match[1], _bytes(cache / name))


def _bytes(folder: Folder) -> int:
    return sum(entry.status.st_size for _, entry in folder.walk() if not entry.is_folder)


def clear(dataset: str | None = None) -> tuple[list[Entry], list[Entry]]:
    """Remove the entries of a data set, or all: those removed, and those that a process is writing just now.

    Runs that have an entry mapped keep it until they end.
    """
    removed, in_use = [], []
    for entry in entries():
        if dataset in (None, entry.dataset):
            (removed if _remove(entry.folder) else in_use).append(entry)
    return removed, in_use


def _remove(folder: Path) -> bool:
    cache = Folder(folder.parent)
    with in_cache(folder):
        try:
            with locked(cache / folder.name, busy=f"another process is writing {folder}"):
                cache.remove_tree(folder.name)
        except FolderInUse:
            return False
    return True
