"""What a request asks of one state of the model: to classify images, to list classes, to add or remove one."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import numpy as np

from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.recogniser import Recogniser
from episodica.classifier.state import ModelState
from episodica.serve.messages import Classified, ClassInfo, ClassList, Nearest, Recognised
from episodica.serve.uploads import Deadline, Refusal, Upload, UploadReader
from episodica.serve.worker import Snapshot, embed_each

Support = Mapping[str, Sequence[Upload]]


def classify(
    snapshot: Snapshot, queries: Sequence[Upload], support: Support, reader: UploadReader, deadline: Deadline
) -> Classified:
    """By the classes of the support images or, where there are none, by those that the model knows."""
    recogniser = snapshot.recogniser

    def embedded(uploads: Sequence[Upload]) -> np.ndarray:
        return embed_each(recogniser, reader.pixels(uploads, recogniser.image_size, deadline), deadline)

    if not support and not recogniser.names:
        sentence = "the model knows no class: send support images, or add a class first"
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, "support")
    examples = {name: embedded(uploads) for name, uploads in support.items()}
    asked = embedded(queries)
    answering = recogniser.only(examples) if support else recogniser
    answers = []
    for upload, vector in zip(queries, asked, strict=True):
        deadline.check()
        (answer,) = answering.answers(vector[None])
        name = answer.best
        assert name is not None, "some class is known"
        near = _among(support[name], examples[name], vector) if support else _stored(snapshot, name, vector, deadline)
        answers.append(
            Recognised(
                image=upload.name,
                best=name,
                probability=answer.probability,
                unknown=answer.unknown,
                scores=answer.scores,
                nearest=near,
            )
        )
    return Classified(state=snapshot.state.id, answers=answers)


def _among(uploads: Sequence[Upload], examples: np.ndarray, vector: np.ndarray) -> Nearest:
    place, distance = _closest(examples, vector)
    return Nearest(image=uploads[place].name, index=uploads[place].index, distance=distance)


def _stored(snapshot: Snapshot, name: str, vector: np.ndarray, deadline: Deadline) -> Nearest | None:
    stored = next(stored for stored in snapshot.state.classes if stored.name == name)
    if not stored.images:
        return None
    place, distance = _closest(snapshot.vectors(stored, deadline), vector)
    return Nearest(image=address(stored.images[place]), index=None, distance=distance)


def _closest(examples: np.ndarray, vector: np.ndarray) -> tuple[int, float]:
    distances = np.linalg.norm(examples - vector, axis=-1)
    return int(distances.argmin()), float(distances.min())


def address(digest: str) -> str:
    return f"/images/{digest}"


def class_list(state: ModelState) -> ClassList:
    classes = [
        ClassInfo(
            name=stored.name,
            images=len(stored.images),
            learned=stored.kind == "learned",
            example=address(stored.images[0]) if stored.images else None,
        )
        for stored in state.classes
    ]
    return ClassList(state=state.id, classes=classes)


def remember(
    snapshot: Snapshot,
    folder: ModelFolder,
    name: str,
    uploads: Sequence[Upload],
    replace: bool,
    reader: UploadReader,
    deadline: Deadline,
) -> ClassList:
    kinds = {stored.name: stored.kind for stored in snapshot.state.classes}
    if name in kinds and (kinds[name] != "remembered" or not replace):
        way_out = "take another name" if kinds[name] != "remembered" else "take another name, or replace it"
        raise Refusal(HTTPStatus.CONFLICT, f"there is a class of this name: {way_out}", "name")

    def embedded(recogniser: Recogniser, images: np.ndarray) -> np.ndarray:
        vectors = embed_each(recogniser, images, deadline)
        deadline.check()  # for the last time before anything is written
        return vectors

    images = reader.pixels(uploads, snapshot.recogniser.image_size, deadline)
    return class_list(folder.remember({name: list(images)}, embed=embedded))


def forget(snapshot: Snapshot, folder: ModelFolder, name: str) -> ClassList:
    if name not in snapshot.state.record.names:
        raise Refusal(HTTPStatus.NOT_FOUND, "there is no class of this name", "name")
    state = folder.forget(name).state
    assert state is not None, "a served model has a state"
    return class_list(state)
