"""Images come to a class, new or known: each file has a result of its own, and no image counts twice."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Literal, NamedTuple

import numpy as np

from episodica.classifier.exact_edits import adding, class_of_points, removing
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import Draft
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import ModelState
from episodica.data.decode import Unreadable
from episodica.files.digest import digest_of
from episodica.learners.statistics import points
from episodica.serve.changes import after_change, same_space
from episodica.serve.description import TRAINED
from episodica.serve.handlers import embedded
from episodica.serve.messages import Changed, FileResult
from episodica.serve.uploads import Deadline, Refusal, Upload, UploadReader
from episodica.serve.worker import ModelWorker, Snapshot, embed_each

IfKnown = Literal["leave", "move"]
WhatAdded = Literal["add", "correct"]


class Addition(NamedTuple):
    """What `POST /images` asks for."""

    name: str
    uploads: Sequence[Upload]
    if_known: IfKnown = "leave"
    what: WhatAdded = "add"
    batch: str | None = None
    asked: Sequence[str] = ()


class Arrived(NamedTuple):
    """An image that could be read."""

    place: int
    square: np.ndarray  # uint8 [S, S, 3]
    point: np.ndarray  # int16 [D]

    @property
    def key(self) -> bytes:
        return self.point.tobytes()


def add(now: Snapshot, worker: ModelWorker, wish: Addition, who: str, reader: UploadReader, end: Deadline) -> Changed:
    """Images of a class, new or known; each has a result of its own."""
    results, arrived = _read(now, worker, wish.uploads, reader, end)
    if not isinstance(now.state, ExactState):
        return _remember_new(now, worker, wish, arrived, results, who, end)

    def edit(state: ModelState) -> tuple[ModelState, Draft] | None:
        state = same_space(state, now)
        known = dict(now.class_of if state.id == now.state.id else class_of_points(state.statistics))
        new, elsewhere = _sorted_out(wish, arrived, known, results)
        end.check()  # for the last time before anything is written
        if not new and not elsewhere:
            return None
        state = removing(state, {name: [one.point for one in of] for name, of in elsewhere.items()})
        joining = [*new, *(one for of in elsewhere.values() for one in of)]
        digests = _kept(worker.folder, state, wish.name, joining)
        for one, digest in zip(joining, digests, strict=False):
            results[one.place] = results[one.place].model_copy(update={"digest": digest})
        draft = Draft(wish.what, (wish.name,), images=len(joining), who=who, batch=wish.batch)
        return adding(state, wish.name, np.stack([one.point for one in joining]), digests), draft

    worker.folder.change(edit, first=worker.first)
    return after_change(worker, now, wish.asked, results)


def _read(
    now: Snapshot, worker: ModelWorker, uploads: Sequence[Upload], reader: UploadReader, end: Deadline
) -> tuple[list[FileResult], list[Arrived]]:
    """What became of each file, as far as reading tells, and the images."""
    results, arrived = [], []
    for place, upload in enumerate(uploads):
        try:
            data = reader.read(upload)
            square = reader.square(upload, data, now.recogniser.image_size, end)
        except (Unreadable, Refusal) as error:
            end.check()  # where the time is up, that is no fault of this image
            results.append(result(upload, "bad", why=str(error)))
            continue
        vector = embedded(now, worker.questions, digest_of(data), lambda square=square: square, end)
        results.append(result(upload, "taken"))
        arrived.append(Arrived(place, square, points(vector[None])[0] if isinstance(now.state, ExactState) else vector))
    return results, arrived


def result(
    upload: Upload,
    status: Literal["taken", "bad", "duplicate", "moved"],
    why: str | None = None,
    duplicate_of: str | None = None,
) -> FileResult:
    return FileResult(image=upload.name, status=status, digest=None, why=why, duplicate_of=duplicate_of)


def _sorted_out(
    wish: Addition, arrived: Sequence[Arrived], known: dict[bytes, str], results: list[FileResult]
) -> tuple[list[Arrived], dict[str, list[Arrived]]]:
    """Images that are new, and those to be moved here, by the class that they are in; others are duplicates."""
    new: list[Arrived] = []
    elsewhere: dict[str, list[Arrived]] = {}
    for one in arrived:
        upload, has = wish.uploads[one.place], known.get(one.key)
        if has is None:
            new.append(one)
        elif has != wish.name and wish.if_known == "move":
            elsewhere.setdefault(has, []).append(one)
            results[one.place] = result(upload, "moved", duplicate_of=has)
        else:
            results[one.place] = result(upload, "duplicate", f"this image is in {has} already", has)
        known[one.key] = wish.name
    return new, elsewhere


def _kept(folder: ModelFolder, state: ExactState, name: str, images: Sequence[Arrived]) -> list[str]:
    """The digests of the first ones, for which a class still has room."""
    most = state.record.kept_of_a_class
    have = next((len(stored.images) for stored in state.classes if stored.name == name), 0)
    room = None if most is None else max(0, most - have)
    return [folder.vault.put(one.square) for one in images[:room]]


def _remember_new(
    now: Snapshot,
    worker: ModelWorker,
    wish: Addition,
    arrived: Sequence[Arrived],
    results: Sequence[FileResult],
    who: str,
    end: Deadline,
) -> Changed:
    """Where the network is trained, a class is remembered from the images that come with it, and stays so."""
    name = wish.name
    if name in now.state.record.names:
        raise Refusal(HTTPStatus.CONFLICT, f"{TRAINED}; take a new name", "class")
    if arrived:
        squares = [one.square for one in arrived]
        worker.folder.remember(
            {name: squares},
            replace=False,
            embed=lambda recogniser, images: embed_each(recogniser, images, end),  # by the network as it is by then
            who=who,
        )
    return after_change(worker, now, wish.asked, results)
