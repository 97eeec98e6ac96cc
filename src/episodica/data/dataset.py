"""The contract of a data set: files of some layout become one array of images with labels."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from episodica.data.archive import unpack
from episodica.data.cache import Arrays, OnProgress, Source, load_or_build, scratch_folder
from episodica.errors import InputError, listed
from episodica.files.address import Address
from episodica.files.remote_copy import fetched
from episodica.registry import Component


def silent(what: str, done: int, total: int) -> None:
    """OnProgress that reports nothing."""


class Dataset(Component, kind="dataset"):
    """One layout or several. Sizes and numbers are the paper's for this set, where nothing else is asked for."""

    root: Annotated[
        str | None, Field(description="folder, archive or address (s3://...) of the files; default: EPISODICA_DATA")
    ] = None
    size: Annotated[int | None, Field(ge=16, le=512, description="pixels of a side; by default the set's own")] = None

    native_size: ClassVar[int]
    part_of: ClassVar[str | None] = None  # a larger set that encoders are trained on

    def load(self, on_progress: OnProgress = silent) -> Arrays:
        """All images, read once and cached."""
        raise NotImplementedError

    def test_per_class(self, counts: np.ndarray) -> int:
        """Test images of each stream class, given the sizes of the classes: a fifth of the smallest class, so that
        something is left to learn from, where the paper says nothing."""
        return max(2, int(counts.min()) // 5)

    def unseen_classes(self, classes: int) -> int:
        """How many classes are held out where the publisher of the set did not choose them."""
        return max(2, classes // 5)


class Found(NamedTuple):
    """A layout recognised in a folder: the files it consists of, and how to read them."""

    files: Sequence[Path]
    read: Callable[[], Source]


class Located(NamedTuple):
    """Where the set is, its files with their names below that place, and how to open it."""

    place: Path
    files: list[tuple[str, Path]]
    read: Callable[[], AbstractContextManager[Source]]


class NotThere(InputError):
    """The set is not in the folder in which it was looked for."""


class FileDataset(Dataset):
    """A set that users have as files. Members say what it looks like; finding, unpacking and caching is done here."""

    where: ClassVar[str]  # to get it
    layout: ClassVar[str]  # in words
    official: ClassVar[tuple[int, int] | None] = None  # classes and images of the whole set
    archives: ClassVar[tuple[str, ...]] = ()  # names under which the set is distributed
    unpacked_bytes: ClassVar[int] = 32 * 2**30  # an archive of the set may hold this much at most

    def find(self, folder: Path) -> Found | None:
        """The set in this very folder, or nothing."""
        raise NotImplementedError

    def load(self, on_progress: OnProgress = silent) -> Arrays:
        _, files, read = self.locate(on_progress)
        return load_or_build(self.name, self.size or self.native_size, self.settings(), files, read, on_progress)

    def locate(self, on_progress: OnProgress = silent) -> Located:
        root = self.place(on_progress)
        try:
            places = self._search(root)
            if places:
                folder, found = self._only(places, root)
                files = [(os.path.relpath(path, folder), path) for path in found.files]
                return Located(folder, files, partial(_opened, found))
            for archive in self._archives_in(root):
                return Located(archive, [(archive.name, archive)], partial(self._unpacked, archive))
            raise NotThere(f"{root} does not hold {self.name}. {self._help()}. Found there: {contents(root)}")
        except OSError as error:
            raise InputError(f"cannot read {error.filename}: {error.strerror}") from None

    def place(self, on_progress: OnProgress = silent) -> Path:
        """The root that the user gave, or the default one; of an address, our copy of what is there."""
        given = self.root or os.environ.get("EPISODICA_DATA")
        if not given:
            raise InputError(f"data.root is missing. {self._help()}. Set data.root or EPISODICA_DATA to its folder")
        address = Address.parse(given)
        if address is not None and not self.root:
            raise InputError(f"EPISODICA_DATA = {given}: name the address of the set itself with data.root")
        if address is not None:
            return fetched(address, on_progress=on_progress)
        root = Path(os.path.expanduser(given))  # noqa: PTH111 - the method fails where there is no such user
        if not os.path.exists(root):  # noqa: PTH110 - the method fails where a name is too long
            raise NotThere(f"data.root = {given}: there is no such folder or file. {self._help()}")
        return root

    def _help(self) -> str:
        return f"Get {self.name} from {self.where}; expected: {self.layout}"

    def _search(self, root: Path) -> list[tuple[Path, Found]]:
        """The set in this folder or, if it is not there, in the folders in it."""
        if not root.is_dir():
            return []
        here = self.find(root)
        if here is not None:
            return [(root, here)]
        found = ((folder, self.find(folder)) for folder in sorted(root.iterdir()) if folder.is_dir())
        return [(folder, layout) for folder, layout in found if layout is not None]

    def _only(self, places: Sequence[tuple[Path, Found]], root: Path) -> tuple[Path, Found]:
        if len(places) > 1:
            names = " and ".join(folder.name for folder, _ in places)
            raise InputError(f"{root}: {names} look like {self.name}; name one of them as data.root")
        return places[0]

    def _archives_in(self, root: Path) -> list[Path]:
        if root.is_file():
            return [root]
        return [root / name for name in self.archives if (root / name).is_file()]

    def settings(self) -> dict[str, object]:
        """What besides the size decides which images are read."""
        return {}

    @contextmanager
    def _unpacked(self, archive: Path) -> Iterator[Source]:
        with scratch_folder() as folder:
            unpack(archive, folder, max_bytes=self.unpacked_bytes)
            places = self._search(folder)
            if not places:
                raise InputError(
                    f"{archive} does not hold {self.name}. {self._help()}. Found in it: {contents(folder)}"
                )
            with _opened(self._only(places, archive)[1]) as source:
                yield source


@contextmanager
def _opened(found: Found) -> Iterator[Source]:
    try:
        source = found.read()
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    yield source


def contents(folder: Path) -> str:
    """The first few things in a folder, for a message."""
    if folder.is_file():
        return f"a file of {folder.stat().st_size} bytes"
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir())
    return listed(names) or "nothing"
