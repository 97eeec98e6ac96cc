"""Where requests are answered, one after another, each by one state of the model from its beginning to its end."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from http import HTTPStatus
from typing import TypeVar

import numpy as np

from episodica.classifier.exact_edits import class_of_points
from episodica.classifier.exact_recogniser import ExactRecogniser
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import Changes
from episodica.classifier.images import pixels
from episodica.classifier.model_folder import ModelFolder, Outdated
from episodica.classifier.recogniser import Recogniser
from episodica.classifier.state import ModelState, StoredClass
from episodica.errors import FolderInUse, InputError
from episodica.files.digest import digest_of
from episodica.files.foreign_text import printable
from episodica.serve.limits import Limits
from episodica.serve.questions import Questions
from episodica.serve.uploads import Deadline, Refusal

log = logging.getLogger(__name__)
T = TypeVar("T")


class Snapshot:
    """A state in memory: whatever happens to the folder, this stays as it is. Its images are read when they are needed,
    and are gone when the model has forgotten them."""

    def __init__(self, state: ModelState, folder: ModelFolder, changes: Changes = ()) -> None:
        self.state, self.folder, self.changes, self.recogniser = state, folder, changes, state.recogniser()
        self._vectors: dict[str, np.ndarray] = {}  # by the digest of the image

    def picture(self, digest: str) -> bytes | None:
        """A PNG that this state keeps; none where it keeps none of this digest, or keeps it no more."""
        if digest not in self.state.record.digests:
            return None
        try:
            return self.folder.vault.read(digest)
        except InputError:
            if self.folder.state().id == self.state.id:
                raise
            return None

    def vectors(self, stored: StoredClass, deadline: Deadline) -> tuple[list[str], np.ndarray]:
        """The images of a class that are kept, and where they lie: [K, D]. Those that the state does not tell are
        computed when they are first asked for.

        Each is kept: a request that runs out of time leaves less to do for the next one.
        """
        for digest in stored.images:
            if digest not in self._vectors:
                vector = self._kept(digest, deadline)
                if vector is not None:
                    self._vectors[digest] = vector
        found = [digest for digest in stored.images if digest in self._vectors]
        return found, np.stack([self._vectors[digest] for digest in found]) if found else np.empty((0, 0))

    def _kept(self, digest: str, deadline: Deadline) -> np.ndarray | None:
        if isinstance(self.state, ExactState) and self.state.kept and digest in self.state.kept:
            assert isinstance(self.recogniser, ExactRecogniser)
            return self.recogniser.comparable_points(self.state.kept[digest][None])[0]
        data = self.picture(digest)
        if data is None:
            return None
        square = pixels(data, self.recogniser.image_size)
        return self.recogniser.comparable(embed_each(self.recogniser, square[None], deadline))[0]

    @cached_property
    def class_of(self) -> dict[bytes, str]:
        """Which class each image belongs to, by its point."""
        assert isinstance(self.state, ExactState)
        return class_of_points(self.state.statistics)


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

    def __init__(
        self,
        folder: ModelFolder,
        limits: Limits,
        first: ModelState | None = None,
        other_news: Callable[[], bytes] = lambda: b"",
    ) -> None:
        """`first` is what there is as long as there is no folder; `other_news` changes with what is told beside it."""
        self.folder, self.limits, self.first, self._other_news = folder, limits, first, other_news
        self.questions = Questions()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="episodica-worker")
        self._waiting = self._heavy = 0
        self._pointer, self._snapshot = self._read()

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

    def version(self) -> str:
        """Changes with the model. Costs next to nothing, and waits for nobody."""
        return digest_of(self._read_pointer() or b"", self._other_news())

    def present(self) -> Snapshot:
        """Read anew exactly when the folder points to another state. For the work itself, after a change."""
        if self._read_pointer() != self._pointer:
            self._pointer, self._snapshot = self._read()
        return self._snapshot

    async def beside(self, work: Callable[[], T]) -> T:
        """What asks the model nothing: in a thread of its own, while others are answered."""
        return await asyncio.to_thread(self._tried, work)

    @contextmanager
    def heavy(self) -> Iterator[None]:
        """What takes as much memory, disk or time as the whole model: a few at once, from the first byte on."""
        if self._heavy >= self.limits.heavy:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the server is busy with work like this: try again later")
        self._heavy += 1
        try:
            yield
        finally:
            self._heavy -= 1

    def _answer(self, work: Callable[[Snapshot, Deadline], T]) -> T:
        def answer() -> T:
            now = self.present()
            self.questions.enter(now.state)
            return work(now, Deadline(self.limits))

        return self._tried(answer)

    def _tried(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except FolderInUse:
            sentence = "the model is being changed by another process: try again when it is done"
            raise Refusal(HTTPStatus.CONFLICT, sentence) from None
        except Outdated as error:
            raise Refusal(HTTPStatus.CONFLICT, str(error)) from None
        except (InputError, OSError) as error:  # of the folder: its sentence names paths, which are not the client's
            log.error("%s", printable(str(error)))
            sentence = "the model on the server cannot be read or written; its log says why"
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, sentence) from None

    def _read(self) -> tuple[bytes | None, Snapshot]:
        """What the folder points to, and the state and the history that belong together."""
        while True:
            pointer = self._read_pointer()
            if pointer is None and self.first and not self.folder.exists:
                return pointer, Snapshot(self.first, self.folder)
            state, changes = self.folder.state(), self.folder.changes()
            if pointer == self._read_pointer():
                return pointer, Snapshot(state, self.folder, changes)

    def _read_pointer(self) -> bytes | None:
        try:
            return self.folder.version()
        except (OSError, InputError):
            return None
