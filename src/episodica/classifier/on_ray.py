"""Answers about many images, or their embeddings, from all machines of a Ray cluster: those of one process, in the
same order.

Workers open the files themselves where they see them; elsewhere they get the bytes. Images are embedded together in
the same batches as without a cluster, because the last bit of an answer may depend on it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple

from episodica.classifier.embed import BATCH, Look, T
from episodica.classifier.image_list import Listed
from episodica.classifier.sent_model import SentModel
from episodica.cluster.spread import OnCluster, Part, Spread
from episodica.data.decode import Unreadable, content, decode_in_parallel

BATCHES = 4  # of a part: enough work that handing it over does not count
PART_BYTES = 2**24  # beyond which no further batch joins a part
MOST_SENT = 2**28  # bytes of a batch: the files of a larger one are decoded here
READERS = 8  # threads

Stamp = tuple[int, int] | None  # size and time of a file; none where there is none


class Batch(NamedTuple):
    """Images that are embedded together: files, their bytes, squares of pixels, or why they cannot be read."""

    names: list[str]
    images: list[Any]
    stamps: list[Stamp] | None = None  # that files must have, to be the ones that the driver means
    bytes: int = 0


@dataclass
class LookOnRay(Generic[T]):
    ray: Any
    how: OnCluster
    model: SentModel
    image_size: int
    look: Look[T]

    def each(self, images: Iterable[Listed]) -> Iterator[T]:
        """Of the images in their order. The first must begin a batch."""
        self._sends = self.how.disk == "own"
        spread = Spread(self.ray, look_there, self.how.cpus)
        for part, found in spread.results(self._parts(iter(images))):
            if found is None:  # not seen there
                self._sends = True
                again = [self._part([some], [self._batch(some)]) for some in part.what]
                found = [one for batch in again for one in spread.result(batch)]
            yield from found

    def _parts(self, images: Iterator[Listed]) -> Iterator[Part]:
        listed: list[Sequence[Listed]] = []
        batches: list[Batch] = []
        while some := list(islice(images, BATCH)):
            listed.append(some)
            batches.append(self._batch(some))
            if len(batches) == BATCHES or sum(batch.bytes for batch in batches) > PART_BYTES:
                yield self._part(listed, batches)
                listed, batches = [], []
        if batches:
            yield self._part(listed, batches)

    def _part(self, listed: Sequence[Sequence[Listed]], batches: Sequence[Batch]) -> Part:
        first, last = batches[0].names[0], batches[-1].names[-1]
        size = sum(batch.bytes for batch in batches)
        return Part(listed, (self.model, batches, self.look), size, f"the images from {first} to {last}")

    def _batch(self, listed: Sequence[Listed]) -> Batch:
        names, files = [image.name for image in listed], [image.path for image in listed]
        stamps = [stamp(path) for path in files]
        if not self._sends:
            return Batch(names, [path.absolute() for path in files], stamps if self.how.disk == "auto" else None)
        if sum(size for size, _ in filter(None, stamps)) > MOST_SENT:
            squares = list(decode_in_parallel(files, self.image_size, names.__getitem__))
            return Batch(names, squares, bytes=len(files) * 3 * self.image_size**2)
        with ThreadPoolExecutor(READERS) as pool:
            contents = list(pool.map(_content, files))
        return Batch(names, contents, bytes=sum(len(data) for data in contents if isinstance(data, bytes)))


def _content(path: Path) -> bytes | Unreadable:
    try:
        return content(path)
    except Unreadable as error:
        return error


def stamp(path: Path) -> Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116 - the method fails where a name is too long
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def look_there(model: SentModel, batches: Sequence[Batch], look: Look[T]) -> list[T] | None:
    """In a worker; none where it does not see the same files as the driver."""
    if any(batch.stamps and batch.stamps != [stamp(path) for path in batch.images] for batch in batches):
        return None
    recogniser = model.recogniser()
    return [one for batch in batches for one in look(recogniser, batch.images, batch.names, model.threads)]
