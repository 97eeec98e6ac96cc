"""Where requests are answered, one after another, each by one state of the model from its beginning to its end."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TypeVar

import numpy as np

from episodica.classifier.images import pixels
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.recogniser import Recogniser
from episodica.classifier.state import ModelState, StoredClass
from episodica.errors import FolderInUse, InputError
from episodica.files.foreign_text import printable
from episodica.serve.limits import Limits
from episodica.serve.uploads import Deadline, Refusal

log = logging.getLogger(__name__)
T = TypeVar("T")


class Snapshot:
    """A state in memory together with its images: whatever happens to the folder, this stays as it is."""

    def __init__(self, state: ModelState, pictures: dict[str, bytes]) -> None:
        self.state, self.pictures, self.recogniser = state, pictures, state.recogniser()
        self._vectors: dict[str, np.ndarray] = {}  # by the digest of the image

    @classmethod
    def of(cls, folder: ModelFolder) -> "Snapshot":
        """Of the present state; where its images vanish while they are read, of the one that has replaced it."""
        while True:
            state = folder.state()
            try:
                digests = [digest for stored in state.classes for digest in stored.images]
                return cls(state, {digest: folder.vault.read(digest) for digest in digests})
            except InputError:
                if folder.state().id == state.id:
                    raise

    def vectors(self, stored: StoredClass, deadline: Deadline) -> np.ndarray:
        """The embeddings of a class's images, computed when they are first asked for. [K, D]

        Each is kept: a request that runs out of time leaves less to do for the next one.
        """
        for digest in stored.images:
            if digest not in self._vectors:
                square = pixels(self.pictures[digest], self.recogniser.image_size)
                self._vectors[digest] = embed_each(self.recogniser, square[None], deadline)
        return np.concatenate([self._vectors[digest] for digest in stored.images])


def embed_each(recogniser: Recogniser, images: np.ndarray, deadline: Deadline) -> np.ndarray:
    """One image at a time: convolutions of a larger batch may round differently, and then the answer to an image would
    depend on what else was asked. [M, S, S, 3] -> [M, D]"""
    vectors = []
    for image in images:
        deadline.check()
        vectors.append(recogniser.embed(image[None]))
    return np.concatenate(vectors)


class ModelWorker:
    """One thread computes, so answers under load are those of a quiet hour."""

    def __init__(self, folder: ModelFolder, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="episodica-worker")
        self._waiting = 0
        self._pointer, self._snapshot = self._read_pointer(), Snapshot.of(folder)

    async def ask(self, work: Callable[[Snapshot, Deadline], T]) -> T:
        """What `work` makes of the present state, when it is its turn."""
        if self._waiting >= self.limits.waiting:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests are waiting: try again in a moment")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, work)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def _answer(self, work: Callable[[Snapshot, Deadline], T]) -> T:
        try:
            return work(self._present(), Deadline(self.limits))
        except FolderInUse:
            sentence = "the model is being changed by another process: try again when it is done"
            raise Refusal(HTTPStatus.CONFLICT, sentence) from None
        except (InputError, OSError) as error:  # of the folder: its sentence names paths, which are not the client's
            log.error("%s", printable(str(error)))
            sentence = "the model on the server cannot be read or written; its log says why"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, sentence) from None

    def _present(self) -> Snapshot:
        """Read anew exactly when the folder points to another state."""
        pointer = self._read_pointer()
        if pointer != self._pointer:
            self._snapshot = Snapshot.of(self.folder)
            self._pointer = pointer
        return self._snapshot

    def _read_pointer(self) -> bytes | None:
        try:
            return self.folder.version()
        except (OSError, InputError):
            return None
