"""What a model is and can do, for those who look at it."""

import numpy as np

from episodica.classifier.exact_recogniser import ExactRecogniser
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import Change, undoable
from episodica.classifier.state import ModelState
from episodica.learners.calibration import LeftOut
from episodica.records.results import wilson_interval
from episodica.serve.drift import Drift
from episodica.serve.limits import Limits
from episodica.serve.messages import (
    Accuracy,
    ChangeInfo,
    ClassInfo,
    DriftInfo,
    EncoderInfo,
    History,
    JobInfo,
    ModelInfo,
    Sizes,
)
from episodica.serve.questions import MOST as MOST_ASKED
from episodica.serve.worker import Snapshot

TRAINED = "this model's network is trained: it can be asked, a new class can be remembered, and a class forgotten"
OF_EXACT = ("add", "correct", "rename", "remove", "quality", "map", "adapt", "import")
NEW = "There is no model {} yet: this one is empty, and is made when the first class comes."
EXAMPLES = 4  # images by which a class is shown at a glance


def model_info(now: Snapshot, version: str, job: JobInfo | None, limits: Limits, drift: Drift) -> ModelInfo:
    moved = drift.distance(now.state.id, held_out_strangeness(now))
    state, name = now.state, now.folder.path.name
    new = not now.folder.exists
    cannot = _cannot(state, new)
    can = {what: what not in cannot for what in (*OF_EXACT, "groups", "undo", "export", "onnx")}
    exact = isinstance(state, ExactState)
    return ModelInfo(
        name=name,
        kind="exact" if exact else "trained",
        new=new,
        notice=NEW.format(name) if new else moved.warning,
        drift=None if moved.value is None else DriftInfo(distance=moved.value, images=moved.images, moved=moved.moved),
        encoder=EncoderInfo(
            name=state.config.backbone.name,
            origin=state.record.encoder.origin if isinstance(state, ExactState) else None,
            image_size=now.recogniser.image_size,
        ),
        can=can,
        cannot=cannot,
        state=state.id,
        version=version + drift.mark,
        keeps=state.record.kept_of_a_class,
        accuracy=accuracy(now),
        classes=class_infos(now),
        undo=next_undo(now),
        job=job,
        limits=Sizes(
            images=limits.images,
            body_bytes=limits.body_bytes,
            image_bytes=limits.image_bytes,
            name_length=limits.name_length,
            asked=MOST_ASKED,
        ),
    )


def _cannot(state: ModelState, new: bool) -> dict[str, str]:
    empty = "there is nothing to export before the first class" if new else None
    given = {
        **({} if isinstance(state, ExactState) else dict.fromkeys(OF_EXACT, TRAINED)),
        "export": empty,
        "onnx": empty,
    }
    return {what: why for what, why in given.items() if why}


def left_out(now: Snapshot) -> LeftOut | None:
    """Of a model without training: each image, asked for as if it had never come."""
    recogniser = now.recogniser
    if not isinstance(recogniser, ExactRecogniser) or len(recogniser.names) < 2:
        return None
    return recogniser.classifier.calibration.left_out


def held_out_strangeness(now: Snapshot) -> np.ndarray | None:
    recogniser = now.recogniser
    if not isinstance(recogniser, ExactRecogniser) or len(recogniser.names) < 2:
        return None
    return recogniser.held_out_strangeness


def accuracy(now: Snapshot) -> Accuracy | None:
    """To an adapter that was trained on them, images that are left out are no strangers: what it recognises of others
    was measured when it was trained."""
    found, encoder = left_out(now), now.state.record.encoder if isinstance(now.state, ExactState) else None
    if encoder and encoder.adapter:
        return share(round((encoder.recognised or 0) * encoder.asked), encoder.asked)
    if found is not None:
        right = np.asarray(found.right)
        return share(int(right.sum()), len(right))
    measured = next((step.measured for step in reversed(now.state.history) if step.measured), None)
    if isinstance(now.state, ExactState) or measured is None or measured.accuracy is None:
        return None
    return share(round(measured.accuracy * measured.images), measured.images)


def share(right: int, asked: int) -> Accuracy | None:
    """With its 95 % interval."""
    if not asked:
        return None
    low, high = wilson_interval(right / asked, asked)
    return Accuracy(value=right / asked, low=low, high=high, images=asked)


def class_infos(now: Snapshot) -> list[ClassInfo]:
    by_class = _by_class(now)
    return [
        ClassInfo(
            name=stored.name,
            images=len(stored.images),
            known_from=now.state.images_of(stored),
            learned=stored.kind == "learned",
            example=address(stored.images[0]) if stored.images else None,
            examples=[address(digest) for digest in stored.images[:EXAMPLES]],
            accuracy=by_class.get(stored.name),
        )
        for stored in now.state.classes
    ]


def _by_class(now: Snapshot) -> dict[str, float]:
    found = left_out(now)
    if found is None:
        return {}
    labels, right = np.asarray(found.labels), np.asarray(found.right)
    return {
        name: float(right[labels == i].mean()) for i, name in enumerate(now.recogniser.names) if (labels == i).any()
    }


def address(digest: str) -> str:
    return f"/images/{digest}"


def next_undo(now: Snapshot) -> int | None:
    last = undoable(now.changes)
    if last is None or last.what == "forget":
        return None
    if last.back is None and (isinstance(now.state, ExactState) or last.before is None or now.changes[-1] is not last):
        return None
    return last.number


def change_info(change: Change) -> ChangeInfo:
    return ChangeInfo(
        number=change.number,
        what=change.what,
        classes=list(change.classes),
        new=list(change.new),
        into=change.into,
        images=change.images,
        who=change.who,
        when=change.when,
        before=change.before,
        after=change.after,
        undone=change.undone,
    )


def history(now: Snapshot, version: str) -> History:
    lines = [change_info(change) for change in reversed(now.changes)]
    return History(state=now.state.id, version=version, undo=next_undo(now), changes=lines)
