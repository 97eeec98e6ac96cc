"""What the image cache takes on the disk, and emptying it.

Entries of files that have changed since, or are gone, are not removed by themselves: nothing tells whether they will be
back. Whoever writes into a folder of the cache holds its `.lock`.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from episodica.data.cache import in_cache
from episodica.files.cache_folder import cache_folder

_OURS = re.compile(r"(.+)-\d+px-[0-9a-f]{16}|unpacked-\w+")  # nothing else is removed, whatever the folder is


class Entry(NamedTuple):
    """The images of a set at one size, or what a killed process had unpacked."""

    folder: Path
    dataset: str | None
    size: int  # in bytes


def entries() -> list[Entry]:
    with in_cache(cache_folder()):
        return list(_entries()) if cache_folder().is_dir() else []


def _entries() -> Iterator[Entry]:
    for folder in sorted(cache_folder().iterdir()):
        match = _OURS.fullmatch(folder.name)
        if match and folder.is_dir() and not folder.is_symlink():
            yield Entry(folder, match[1], sum(map(_bytes, folder.rglob("*"))))


def _bytes(path: Path) -> int:
    """Of a file that another process may be removing just now."""
    try:
        return 0 if path.is_dir() else path.lstat().st_size
    except FileNotFoundError:
        return 0


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
    with in_cache(folder):
        try:
            with FileLock(folder / ".lock", timeout=0):
                shutil.rmtree(folder)
        except Timeout:
            return False
    return True
