"""What a request does to the model: images and classes come, go and are moved, and each change can be undone."""

from collections.abc import Callable, Sequence
from http import HTTPStatus

import numpy as np

from episodica.classifier.exact_edits import adding, points_of_images, removing, renaming
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import Draft
from episodica.classifier.images import pixels
from episodica.classifier.model_folder import Outdated
from episodica.classifier.recogniser import Answer, Recogniser
from episodica.classifier.state import ModelState
from episodica.learners.statistics import points
from episodica.serve.description import TRAINED, accuracy, change_info, class_infos, next_undo
from episodica.serve.messages import BeforeAfter, Changed, FileResult, OtherAnswer, ShortAnswer
from episodica.serve.uploads import Deadline, Refusal, Upload, UploadReader
from episodica.serve.worker import ModelWorker, Snapshot, embed_each

WEIGHTS_GONE = "What was learned in depth was learned from this class, too, and is gone with it: learn in depth again."
WEIGHTS_STAY = "The weights were trained on this class and stay as they are."


def after_change(
    worker: ModelWorker,
    before: Snapshot,
    asked: Sequence[str] = (),
    files: Sequence[FileResult] = (),
    notice: str | None = None,
) -> Changed:
    """How the model is now, and what that means for answers that were given."""
    after = worker.present()
    change = after.changes[-1] if after.changes and after.state.id != before.state.id else None
    return Changed(
        state=after.state.id,
        version=worker.version(),
        classes=class_infos(after),
        change=change_info(change) if change else None,
        accuracy=BeforeAfter(before=accuracy(before), after=accuracy(after)),
        answers=_other_answers(worker, before.recogniser, after.recogniser, asked),
        files=list(files),
        notice=notice,
    )


def _other_answers(
    worker: ModelWorker, before: Recogniser, after: Recogniser, asked: Sequence[str]
) -> list[OtherAnswer]:
    """Of images that were asked about before, those that are answered differently now."""
    found = {digest: vector for digest in asked if (vector := worker.questions.get(digest)) is not None}
    if not found:
        return []
    vectors = np.stack([*found.values()])
    lines = zip(found, before.answers(vectors), after.answers(vectors), strict=True)
    return [
        OtherAnswer(asked=digest, before=_short(old), after=_short(new))
        for digest, old, new in lines
        if (old.best, old.unknown) != (new.best, new.unknown)
    ]


def _short(answer: Answer) -> ShortAnswer:
    return ShortAnswer(best=answer.best, probability=answer.probability, unknown=answer.unknown)


def remember(
    now: Snapshot,
    worker: ModelWorker,
    name: str,
    uploads: Sequence[Upload],
    replace: bool,
    who: str,
    reader: UploadReader,
    end: Deadline,
) -> Changed:
    """A class from a few images, all of them or none."""
    kinds = {stored.name: stored.kind for stored in now.state.classes}
    if name in kinds and (kinds[name] != "remembered" or not replace):
        way_out = "take another name" if kinds[name] != "remembered" else "take another name, or replace it"
        raise Refusal(HTTPStatus.CONFLICT, f"there is a class of this name: {way_out}", "name")

    def embed(recogniser: Recogniser, images: np.ndarray) -> np.ndarray:
        vectors = embed_each(recogniser, images, end)
        end.check()  # for the last time before anything is written
        return vectors

    images = reader.pixels(uploads, now.recogniser.image_size, end)
    if not worker.folder.exists and worker.first:
        with worker.folder.writing():
            worker.folder.commit(worker.first)
    worker.folder.remember({name: list(images)}, replace=replace, embed=embed, who=who)
    return after_change(worker, now)


def remove(now: Snapshot, worker: ModelWorker, digests: Sequence[str], who: str, asked: Sequence[str]) -> Changed:
    """Single images; a class without any is gone."""
    _require(now, digests)

    def edit(state: ExactState) -> tuple[ModelState, Draft] | None:
        found = points_of_images(state, digests, _embedding(now))
        if not found:
            return None
        draft = Draft("remove", tuple(found), images=sum(map(len, found.values())), who=who)
        return removing(state, {name: of.values() for name, of in found.items()}, digests), draft

    return _edited(now, worker, edit, asked)


def move(
    now: Snapshot, worker: ModelWorker, digests: Sequence[str], name: str, who: str, asked: Sequence[str]
) -> Changed:
    """Single images to another class, new or known."""
    _require(now, digests)

    def edit(state: ExactState) -> tuple[ModelState, Draft] | None:
        found = points_of_images(state, digests, _embedding(now))
        found.pop(name, None)
        if not found:
            return None
        moving = {point.tobytes(): (d, point) for of in found.values() for d, point in of.items()}
        there = {point.tobytes() for point in np.asarray(state.statistics.classes.get(name, ()))}
        new = [pair for key, pair in moving.items() if key not in there]
        state = removing(state, {other: of.values() for other, of in found.items()}, digests)
        if new:
            state = adding(state, name, np.stack([point for _, point in new]), [digest for digest, _ in new])
        return state, Draft("move", tuple(found), into=name, images=sum(map(len, found.values())), who=who)

    return _edited(now, worker, edit, asked)


def rename(
    now: Snapshot, worker: ModelWorker, name: str, to: str, merge: bool, who: str, asked: Sequence[str]
) -> Changed:
    if name not in now.state.record.names:
        raise Refusal(HTTPStatus.NOT_FOUND, "there is no class of this name", "name")

    def edit(state: ExactState) -> tuple[ModelState, Draft] | None:
        if name == to or name not in state.record.names:
            return None
        there = to in state.record.names
        if there and not merge:
            sentence = "there is a class of that name: take another one, or merge the two"
            raise Refusal(HTTPStatus.CONFLICT, sentence, "to")
        return renaming(state, name, to), Draft("merge" if there else "rename", (name,), into=to, who=who)

    return _edited(now, worker, edit, asked)


def forget(now: Snapshot, worker: ModelWorker, name: str, who: str) -> Changed:
    known = {*now.state.record.mentioned, *(known for change in now.changes for known in change.names)}
    if name not in known or not worker.folder.exists:
        raise Refusal(HTTPStatus.NOT_FOUND, "there is no class of this name", "name")
    found = worker.folder.forget(name, who=who)
    return after_change(
        worker, now, notice=WEIGHTS_GONE if found.weights_gone else WEIGHTS_STAY if found.trained else None
    )


def undo(now: Snapshot, worker: ModelWorker, number: int, who: str) -> Changed:
    if next_undo(now) != number:
        raise Refusal(HTTPStatus.CONFLICT, "this is not the last change, or it cannot be undone: look at the history")
    worker.folder.undo(number=number, who=who)
    return after_change(worker, now)


def _edited(
    now: Snapshot,
    worker: ModelWorker,
    edit: Callable[[ExactState], tuple[ModelState, Draft] | None],
    asked: Sequence[str],
) -> Changed:
    def exact(state: ModelState) -> tuple[ModelState, Draft] | None:
        return edit(same_space(state, now))

    if not isinstance(now.state, ExactState):
        raise Refusal(HTTPStatus.CONFLICT, TRAINED)
    worker.folder.change(exact)
    return after_change(worker, now, asked)


def same_space(state: ModelState, now: Snapshot) -> ExactState:
    """The state to change, if points that were computed for `now` mean the same there."""
    assert isinstance(now.state, ExactState)
    if not isinstance(state, ExactState) or state.record.encoder.bare != now.state.record.encoder.bare:
        raise Outdated("the model sees images in another way by now: send them again")
    return state


def _require(now: Snapshot, digests: Sequence[str]) -> None:
    known = {digest for stored in now.state.classes for digest in stored.images}
    missing = next((i for i, digest in enumerate(digests) if digest not in known), None)
    if missing is not None:
        raise Refusal(HTTPStatus.NOT_FOUND, "there is no such image (any more)", "digests", missing)


def _embedding(now: Snapshot) -> Callable[[str], np.ndarray]:
    """The point of an image that is kept, computed anew."""
    recogniser = now.recogniser

    def embed(digest: str) -> np.ndarray:
        square = pixels(now.folder.vault.read(digest), recogniser.image_size)
        return points(recogniser.embed(square[None]))[0]

    return embed
