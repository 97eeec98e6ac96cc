"""Images are read once, in parallel, into one memory-mapped array on disk; a second start finds it there.

An entry is a folder `NAME-KEY` with `images.npy` and, written last, `meta.json`. The key follows from the settings and
from the name, size and time of every file of the set, so that looking it up reads no image. The fingerprint is a hash
of the decoded content: it stays the same when a set is moved, copied or archived.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from errno import EACCES, EDQUOT, EFBIG, EIO, ENOSPC, EROFS, ESTALE
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np

from episodica.data.decode import Unreadable, decode_in_parallel
from episodica.errors import InputError, listed
from episodica.files.cache_folder import cache_folder
from episodica.files.digest import digest_of
from episodica.files.door import Folder, Refused
from episodica.files.lock import locked
from episodica.files.parsing import parse_json

FORMAT = 1
IMAGES, META = "images.npy", "meta.json"
MOST_META = 2**28  # bytes
OURS = 0o600  # what others could write is not believed
OF_THE_DISK = {EACCES, EDQUOT, EFBIG, EIO, ENOSPC, EROFS, ESTALE}  # errors that say nothing about what lies on it
NAMED = 10  # unreadable images that an error names
REPORTED_EVERY = 500  # images
OnProgress = Callable[[str, int, int], None]  # what is being done, how much of it, of how much


@dataclass(frozen=True, eq=False)
class Source:
    """A data set as it was found, before decoding: anything that `decode` takes, in the order of the files."""

    images: Sequence[Any] | np.ndarray
    labels: np.ndarray  # [n], 0 .. C - 1
    class_names: tuple[str, ...]
    unseen: tuple[int, ...] | None = None  # meta-test classes, where the publisher of the set chose them
    groups: tuple[int, ...] | None = None  # of each class, where classes come in families
    notes: tuple[str, ...] = ()  # what a person should know about how it was read

    def name_of(self, i: int) -> str:
        """What to call an image in a message."""
        image = self.images[i]
        return str(image) if isinstance(image, Path) else f"image {i} ({self.class_names[self.labels[i]]})"


@dataclass(frozen=True, eq=False)
class Arrays:
    """A data set as the stream needs it: n images of C classes, of one size."""

    images: np.ndarray  # uint8 [n, H, W, 3], memory-mapped
    labels: np.ndarray  # int64 [n]
    class_names: tuple[str, ...]
    fingerprint: str  # of the content
    unseen: tuple[int, ...] | None = None
    groups: tuple[int, ...] | None = None


def load_or_build(
    name: str,
    size: int,
    settings: Mapping[str, Any],
    files: Iterable[tuple[str, Path]],
    read: Callable[[], AbstractContextManager[Source]],
    on_progress: OnProgress,
) -> Arrays:
    """The images of a set at one size: from the cache or, where they are not there or damaged, from the source."""
    try:
        stamps = [(label, *_stamp(path.stat())) for label, path in files]
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    entry = Folder(cache_folder()) / f"{name}-{size}px-{_digest([FORMAT, size, settings, stamps])}"
    with in_cache(entry.path):
        entry.make_private()
        return build_once(entry, size, read, on_progress)


def build_once(
    entry: Folder,
    size: int,
    read: Callable[[], AbstractContextManager[Source]],
    on_progress: OnProgress = lambda *_: None,
) -> Arrays:
    """What the folder `entry` holds or, where that is nothing or damaged, what `read` gives, decoded into it."""
    with locked(entry):  # a second process waits and then finds what the first has built
        found = _load(entry)
        if found is None:
            with read() as source:
                _build(entry, source, size, on_progress)
            found = _load(entry)
    assert found is not None, f"{entry} was built but cannot be read"
    return found


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A place for what is unpacked on the way, locked while it is needed."""
    with in_cache(cache_folder()):
        Folder(cache_folder()).make(0o700)
        with TemporaryDirectory(dir=cache_folder(), prefix="unpacked-") as folder, locked(Folder(Path(folder))):
            yield Path(folder) / "files"


@contextmanager
def in_cache(place: Path) -> Iterator[None]:
    """What goes wrong with the disk in here is a matter of the cache, which the user can place elsewhere."""
    try:
        yield
    except Refused as error:
        raise InputError(f"cannot use the image cache: {error}; EPISODICA_CACHE says where it is") from None
    except OSError as error:
        raise InputError(
            f"cannot use the image cache {place}: {error.strerror or error}; free some space there, or set "
            "EPISODICA_CACHE to another folder"
        ) from None


def _digest(value: Any) -> str:
    return digest_of(json.dumps(value, sort_keys=True).encode(), size=8)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _seal(file: IO[bytes]) -> tuple[int, ...]:
    """Other than the time of a file's content, that of its last change cannot be set back."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _load(entry: Folder) -> Arrays | None:
    """The entry, or nothing where it is missing or damaged.

    The seal of `images.npy` tells whether it was changed since; only then is its content checked.
    """
    try:
        with entry.open_own(META) as file:
            sealed = parse_json(file.read(MOST_META), MOST_META)
        meta = sealed["meta"]
        if _digest(meta) != sealed["digest"]:
            return None
        with entry.open_own(IMAGES) as file:
            images, seal = _mapped(file), _seal(file)
        labels = np.array(meta["labels"], dtype=np.int64)
        if seal != tuple(meta["stamp"]):
            if fingerprint_of(images, labels, meta["class_names"]) != meta["fingerprint"]:
                return None
            _write_meta(entry, meta | {"stamp": seal})
    except Exception as error:  # NumPy lets through whatever its reading of a damaged header stumbles over
        if isinstance(error, OSError) and error.errno in OF_THE_DISK:
            raise
        return None
    optional = {key: tuple(meta[key]) if meta[key] is not None else None for key in ("unseen", "groups")}
    return Arrays(images, labels, tuple(meta["class_names"]), meta["fingerprint"], **optional)


def _mapped(file: IO[bytes]) -> np.memmap:
    """The array of a `.npy` file, which stays on the disk."""
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("not written by us")
    shape, in_columns, kind = np.lib.format.read_array_header_1_0(file)
    if in_columns or kind != np.uint8:
        raise ValueError("not written by us")
    return np.memmap(file, np.uint8, "r", file.tell(), shape)


def _build(entry: Folder, source: Source, size: int, on_progress: OnProgress) -> None:
    for name in (META, IMAGES):
        entry.remove_tree(name)
    entry.remove_leftovers()
    content = begin_fingerprint(source.labels, source.class_names)

    def write(file: IO[bytes]) -> None:
        shape = (len(source.labels), size, size, 3)
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for image in _readable(source, size, on_progress):
            file.write(image.tobytes())
            content.update(image.tobytes())

    entry.write(IMAGES, write, OURS)  # not by a map: a full disk would end the process there
    with entry.open_own(IMAGES) as file:
        seal = _seal(file)
    meta = {
        "class_names": source.class_names,
        "fingerprint": content.hexdigest(),
        "unseen": source.unseen,
        "groups": source.groups,
        "stamp": seal,
        "labels": source.labels.tolist(),
    }
    _write_meta(entry, meta)


def _write_meta(entry: Folder, meta: dict[str, Any]) -> None:
    entry.write_bytes(META, json.dumps({"digest": _digest(meta), "meta": meta}).encode(), OURS)


def _readable(source: Source, size: int, on_progress: OnProgress) -> Iterator[np.ndarray]:
    """Every image; at the end, those that cannot be read are named together in one error."""
    unreadable = []
    for _, image in decode_each(source, size, on_progress):
        if isinstance(image, Unreadable):
            unreadable.append(image)
        else:
            yield image
    if unreadable:
        raise InputError(
            f"{len(unreadable)} of {len(source.labels)} images cannot be read: "
            f"{listed([str(image) for image in unreadable], NAMED, '; ')}. Repair or remove them"
        )


def decode_each(source: Source, size: int, on_progress: OnProgress) -> Iterator[tuple[int, np.ndarray | Unreadable]]:
    """The number of each image with its pixels, or with why it cannot be read."""
    total = len(source.labels)
    for i, image in enumerate(decode_in_parallel(source.images, size, source.name_of)):
        yield i, image
        if (i + 1) % REPORTED_EVERY == 0 or i + 1 == total:
            on_progress("reading images", i + 1, total)


def fingerprint_of(images: np.ndarray, labels: np.ndarray, class_names: Sequence[str]) -> str:
    content = begin_fingerprint(labels, class_names)
    for start in range(0, len(images), 1024):
        content.update(images[start : start + 1024].tobytes())
    return content.hexdigest()


def begin_fingerprint(labels: np.ndarray, class_names: Sequence[str]) -> blake2b:
    """Of the labels; the images follow."""
    return blake2b(json.dumps([list(class_names), labels.tolist()]).encode(), digest_size=16)
