"""Images are read once, in parallel, into one memory-mapped array on disk; a second start finds it there.

An entry is a folder `NAME-KEY` with `images.npy` and, written last, `meta.json`. The key follows from the settings and
from the name, size and time of every file of the set, so that looking it up reads no image. The fingerprint is a hash
of the decoded content: it stays the same when a set is moved, copied or archived.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from episodica.data.decode import Unreadable, decode_in_parallel
from episodica.errors import InputError
from episodica.records.files import write_json

FORMAT = 1
NAMED = 10  # unreadable images that an error names
TOLD = 500  # images between two words on progress
Progress = Callable[[str, int, int], None]  # what is being done, how much of it, of how much


@dataclass(frozen=True, eq=False)
class Source:
    """A data set as it was found, before decoding: anything that `decode` takes, in the order of the files."""

    images: Sequence[Any] | np.ndarray
    labels: np.ndarray  # [n], 0 .. C - 1
    class_names: tuple[str, ...]
    unseen: tuple[int, ...] | None = None  # meta-test classes, where the publisher of the set chose them
    groups: tuple[int, ...] | None = None  # of each class, where classes come in families

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


def cache_folder() -> Path:
    """`EPISODICA_CACHE`, or the user's cache folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("EPISODICA_CACHE") or base / "episodica")


def load_or_build(
    name: str,
    size: int,
    settings: Mapping[str, Any],
    files: Iterable[tuple[str, Path]],
    read: Callable[[], AbstractContextManager[Source]],
    tell: Progress,
) -> Arrays:
    """The images of a set at one size: from the cache or, where they are not there or damaged, from the source."""
    stamps = [(label, *_stamp(path)) for label, path in files]
    text = json.dumps([FORMAT, size, settings, stamps], sort_keys=True)
    entry = cache_folder() / f"{name}-{size}px-{blake2b(text.encode(), digest_size=8).hexdigest()}"
    try:
        entry.mkdir(parents=True, exist_ok=True)
        with FileLock(entry / ".lock"):  # a second process waits and then finds what the first has built
            found = _load(entry)
            if found is None:
                with read() as source:
                    _build(entry, source, size, tell)
                found = _load(entry)
    except OSError as error:
        raise InputError(
            f"cannot use the image cache {entry}: {error.strerror or error}; free some space there, or set "
            "EPISODICA_CACHE to another folder"
        ) from None
    assert found is not None, f"the cache entry {entry} was built but cannot be read"
    return found


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _load(entry: Path) -> Arrays | None:
    """The entry, or nothing where it is missing or damaged.

    The time of `images.npy` tells whether anybody touched it since; only then is its content checked.
    """
    try:
        meta = json.loads((entry / "meta.json").read_text())
        path = entry / "images.npy"
        images = np.load(path, mmap_mode="r", allow_pickle=False)
        labels = np.array(meta["labels"], dtype=np.int64)
        if _stamp(path) != tuple(meta["stamp"]):
            if _fingerprint(images, labels, meta["class_names"]) != meta["fingerprint"]:
                return None
            write_json(entry / "meta.json", meta | {"stamp": _stamp(path)})
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    optional = {key: tuple(meta[key]) if meta[key] is not None else None for key in ("unseen", "groups")}
    return Arrays(images, labels, tuple(meta["class_names"]), meta["fingerprint"], **optional)


def _build(entry: Path, source: Source, size: int, tell: Progress) -> None:
    (entry / "meta.json").unlink(missing_ok=True)
    part, path = entry / "images.part", entry / "images.npy"
    try:
        shape = (len(source.labels), size, size, 3)
        images = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=shape)
        _fill(images, source, size, tell)
        images.flush()
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    meta = {
        "class_names": source.class_names,
        "fingerprint": _fingerprint(images, source.labels, source.class_names),
        "unseen": source.unseen,
        "groups": source.groups,
        "stamp": _stamp(path),
        "labels": source.labels.tolist(),
    }
    write_json(entry / "meta.json", meta)


def _fill(images: np.ndarray, source: Source, size: int, tell: Progress) -> None:
    """Decode every image; those that cannot be read are named together in one error."""
    unreadable = []
    for i, image in decode_each(source, size, tell):
        if isinstance(image, Unreadable):
            unreadable.append(image)
        else:
            images[i] = image
    if unreadable:
        more = f"; and {len(unreadable) - NAMED} more" if len(unreadable) > NAMED else ""
        raise InputError(
            f"{len(unreadable)} of {len(images)} images cannot be read, and nothing was cached: "
            f"{'; '.join(map(str, unreadable[:NAMED]))}{more}. Repair or remove them"
        )


def decode_each(source: Source, size: int, tell: Progress) -> Iterator[tuple[int, np.ndarray | Unreadable]]:
    """The number of each image with its pixels, or with why it cannot be read."""
    total = len(source.labels)
    for i, image in enumerate(decode_in_parallel(source.images, size, source.name_of)):
        yield i, image
        if (i + 1) % TOLD == 0 or i + 1 == total:
            tell("reading images", i + 1, total)


def _fingerprint(images: np.ndarray, labels: np.ndarray, class_names: Sequence[str]) -> str:
    digest = blake2b(json.dumps([list(class_names), labels.tolist()]).encode(), digest_size=16)
    for start in range(0, len(images), 1024):
        digest.update(images[start : start + 1024].tobytes())
    return digest.hexdigest()
