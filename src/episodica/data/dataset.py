"""The contract of a data set: files of some layout become one array of images with labels."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from episodica.data.archive import unpack
from episodica.data.cache import Arrays, Progress, Source, cache_folder, load_or_build
from episodica.errors import InputError
from episodica.registry import Component


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


class Dataset(Component, kind="dataset"):
    """One layout or several. The class variables are the protocol's numbers for this set."""

    root: Annotated[str | None, Field(description="folder or archive with the files; default: EPISODICA_DATA")] = None
    size: Annotated[int | None, Field(ge=16, le=512, description="pixels of a side; by default the set's own")] = None

    native_size: ClassVar[int]

    def load(self, tell: Progress = silent) -> Arrays:
        """All images, read once and cached."""
        raise NotImplementedError

    def test_per_class(self, counts: np.ndarray) -> int:
        """Test images of each stream class, given the sizes of the classes."""
        raise NotImplementedError

    def unseen_classes(self, classes: int) -> int:
        """How many classes are held out where the publisher of the set did not choose them."""
        raise NotImplementedError


class Found(NamedTuple):
    """A layout recognised in a folder: the files it consists of, and how to read them."""

    files: Sequence[Path]
    read: Callable[[], Source]


class FileDataset(Dataset):
    """A set that users have as files. Members say what it looks like; finding, unpacking and caching is done here."""

    where: ClassVar[str]  # to get it
    layout: ClassVar[str]  # in words
    official: ClassVar[tuple[int, int] | None] = None  # classes and images of the whole set
    archives: ClassVar[tuple[str, ...]] = ()  # names under which the set is distributed
    unpacked_bytes: ClassVar[int] = 0  # an archive of the set may hold this much at most

    def find(self, folder: Path) -> Found | None:
        """The set in this very folder, or nothing."""
        raise NotImplementedError

    def load(self, tell: Progress = silent) -> Arrays:
        files, read = self.locate()
        return load_or_build(self.name, self.size or self.native_size, self.settings(), files, read, tell)

    def locate(self) -> tuple[list[tuple[str, Path]], Callable[[], AbstractContextManager[Source]]]:
        """The files of the set with their names below the root, and how to read them."""
        root = self.place()
        found = self._search(root)
        if found is not None:
            return [(os.path.relpath(path, root), path) for path in found.files], lambda: nullcontext(found.read())
        for archive in self._archives_in(root):
            return [(archive.name, archive)], partial(self._unpacked, archive)
        raise InputError(f"{root} does not hold {self.name}. {self._help()}. Found there: {contents(root)}")

    def place(self) -> Path:
        """The root that the user gave, or the default one."""
        given = self.root or os.environ.get("EPISODICA_DATA")
        if given is None:
            raise InputError(f"data.root is missing. {self._help()}. Pass --data.root DIR, or set EPISODICA_DATA")
        root = Path(given).expanduser()
        if not root.exists():
            raise InputError(f"data.root = {given}: there is no such folder or file. {self._help()}")
        return root

    def _help(self) -> str:
        return f"Get {self.name} from {self.where}; expected: {self.layout}"

    def _search(self, root: Path) -> Found | None:
        if not root.is_dir():
            return None
        for folder in (root, *sorted(entry for entry in root.iterdir() if entry.is_dir())):
            found = self.find(folder)
            if found is not None:
                return found
        return None

    def _archives_in(self, root: Path) -> list[Path]:
        if root.is_file():
            return [root]
        return [root / name for name in self.archives if (root / name).is_file()]

    def settings(self) -> dict[str, object]:
        """What besides the size decides which images are read."""
        return {}

    @contextmanager
    def _unpacked(self, archive: Path) -> Iterator[Source]:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache_folder(), prefix="unpacked-") as folder:
            unpack(archive, Path(folder), max_bytes=self.unpacked_bytes)
            found = self._search(Path(folder))
            if found is None:
                raise InputError(
                    f"{archive} does not hold {self.name}. {self._help()}. Found in it: {contents(Path(folder))}"
                )
            yield found.read()


def contents(folder: Path) -> str:
    """The first few things in a folder, for a message."""
    if folder.is_file():
        return f"a file of {folder.stat().st_size} bytes"
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in folder.iterdir())
    return (", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")) or "nothing"
