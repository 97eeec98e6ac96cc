"""Which images a command is about: files, folders and patterns, in an order that is always the same.

The list is on the disk, in a file that goes with its process: memory does not grow with it.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from glob import glob, has_magic
from pathlib import Path
from typing import NamedTuple

from episodica.data.cache import OnProgress
from episodica.data.image_formats import is_image_file, is_unread_image_file
from episodica.errors import InputError
from episodica.files.address import Address
from episodica.files.remote_copy import fetched


class Listed(NamedTuple):
    name: str  # as the user would name it
    path: Path


class ImageList:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._copies: dict[int, tuple[Address, str]] = {}  # of places that are elsewhere

    def __len__(self) -> int:
        return self._database.execute("SELECT count(*) FROM image").fetchone()[0]

    def __iter__(self) -> Iterator[Listed]:
        for place, key in self._database.execute("SELECT place, key FROM image ORDER BY place, key, rowid"):
            path = _path(key)
            address, copy = self._copies.get(place, ("", ""))
            yield Listed(f"{address}{str(path).removeprefix(copy)}", path)

    def add(self, place: int, files: Iterable[Path], copy: tuple[Address, Path] | None = None) -> int:
        """Files of one place, in any order; how many. `copy`: of an address, where they are from there."""
        if copy:
            self._copies[place] = (copy[0], str(copy[1]))
        rows = ((place, _key(path)) for path in files)
        return self._database.executemany("INSERT INTO image VALUES (?, ?)", rows).rowcount


@contextmanager
def image_list(places: Iterable[Path], on_progress: OnProgress = lambda *_: None) -> Iterator[ImageList]:
    """Files as they are, folders as all images in them, and patterns as what they match; of addresses, our copies."""
    with closing(sqlite3.connect("")) as database:  # on the disk, without a name
        database.execute("CREATE TABLE image (place INTEGER, key BLOB)")
        found = ImageList(database)
        for number, named in enumerate(_named(places)):
            address = Address.parse(named)
            place = named if address is None else fetched(address, on_progress=on_progress)
            copy = address and (address, place)
            if place.is_dir():
                if not found.add(number, _images_below(place), copy):
                    raise InputError(f"{named} holds no image: name a folder that does, or the files")
            else:
                found.add(number, [place], copy)
        yield found


def _named(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        if has_magic(str(place)) and not Address.parse(place) and not place.exists():
            matching = sorted(map(Path, glob(str(place), recursive=True)))  # noqa: PTH207 - the pattern may be absolute
            if not matching:
                raise InputError(f"nothing matches {place}")
            yield from matching
        else:
            yield place


def _images_below(folder: Path) -> Iterator[Path]:
    """Links to folders are not followed. Kinds that are not read belong to it: they are answered with the reason."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        with os.scandir(here) as entries:
            for entry in entries:
                path = here / entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif (is_image_file(path) or is_unread_image_file(path)) and entry.is_file():
                    yield path


def _key(path: Path) -> bytes:
    """Bytes that are in order where the parts of the paths are."""
    return str(path).replace("/", "\0").encode("utf-8", "surrogatepass")


def _path(key: bytes) -> Path:
    return Path(key.decode("utf-8", "surrogatepass").replace("\0", "/"))
