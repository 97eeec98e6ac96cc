"""What a request asks of one state of the model, and does not change: to classify images, to show those of a class."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

import numpy as np

from episodica.classifier.exact_state import ExactState
from episodica.files.digest import digest_of
from episodica.serve.description import address, class_infos, left_out
from episodica.serve.messages import Classified, ClassList, KeptImage, KeptImages, Nearest, Recognised
from episodica.serve.questions import Questions
from episodica.serve.uploads import Deadline, Refusal, Upload, UploadReader, refusing
from episodica.serve.worker import Snapshot, embed_each

Support = Mapping[str, Sequence[Upload]]


def embedded(
    now: Snapshot, questions: Questions, digest: str, decode: Callable[[], np.ndarray], deadline: Deadline
) -> np.ndarray:
    """The embedding of an image, from memory where it was asked about before. [D]"""
    found = questions.get(digest)
    if found is None:
        (found,) = embed_each(now.recogniser, decode()[None], deadline)
        questions.put(digest, found)
    return found


def classify(
    now: Snapshot,
    questions: Questions,
    queries: Sequence[Upload],
    support: Support,
    reader: UploadReader,
    deadline: Deadline,
) -> Classified:
    """By the classes of the support images or, where there are none, by those that the model knows."""
    recogniser = now.recogniser

    def vector_of(upload: Upload) -> tuple[str, np.ndarray]:
        data = reader.read(upload)
        digest, size = digest_of(data), recogniser.image_size

        def decode() -> np.ndarray:
            with refusing(upload):
                return reader.square(upload, data, size, deadline)

        return digest, embedded(now, questions, digest, decode, deadline)

    if not support and not recogniser.names:
        sentence = "the model knows no class: send support images, or add a class first"
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, "support")
    examples = {name: np.stack([vector_of(upload)[1] for upload in of]) for name, of in support.items()}
    asked = [vector_of(upload) for upload in queries]
    answering = recogniser.only(examples) if support else recogniser
    answers = []
    for upload, (digest, vector) in zip(queries, asked, strict=True):
        deadline.check()
        (answer,) = answering.answers(vector[None])
        name = answer.best
        assert name is not None, "some class is known"
        place = recogniser.comparable(vector[None])[0]
        if support:
            near = _among(support[name], recogniser.comparable(examples[name]), place)
        else:
            near = _stored(now, name, place, deadline)
        answers.append(
            Recognised(
                image=upload.name,
                best=name,
                probability=answer.probability,
                unknown=answer.unknown,
                scores=answer.scores,
                nearest=near,
                strangeness=answer.strangeness,
                limit=answer.limit,
                asked=digest,
            )
        )
    return Classified(state=now.state.id, answers=answers)


def _among(uploads: Sequence[Upload], examples: np.ndarray, vector: np.ndarray) -> Nearest:
    place, distance = _closest(examples, vector)
    return Nearest(image=uploads[place].name, index=uploads[place].index, distance=distance)


def _stored(now: Snapshot, name: str, vector: np.ndarray, deadline: Deadline) -> Nearest | None:
    stored = next(stored for stored in now.state.classes if stored.name == name)
    digests, vectors = now.vectors(stored, deadline)
    if not digests:
        return None
    place, distance = _closest(vectors, vector)
    return Nearest(image=address(digests[place]), index=None, distance=distance)


def _closest(examples: np.ndarray, vector: np.ndarray) -> tuple[int, float]:
    distances = np.linalg.norm(examples - vector, axis=-1)
    return int(distances.argmin()), float(distances.min())


def class_list(now: Snapshot) -> ClassList:
    return ClassList(state=now.state.id, classes=class_infos(now))


def kept_images(now: Snapshot, name: str) -> KeptImages:
    stored = next((stored for stored in now.state.classes if stored.name == name), None)
    if stored is None:
        raise Refusal(HTTPStatus.NOT_FOUND, "there is no class of this name", "class")
    answers = answers_of_kept(now, name)
    images = [KeptImage(image=address(d), digest=d, answer=answers.get(d)) for d in stored.images]
    return KeptImages(state=now.state.id, name=name, known_from=now.state.images_of(stored), images=images)


def answers_of_kept(now: Snapshot, name: str) -> dict[str, str]:
    """What is answered where an image of a class is left out, by the digest of the image."""
    found, state = left_out(now), now.state
    if found is None or not isinstance(state, ExactState) or not state.kept:
        return {}
    names = now.recogniser.names
    mine = np.asarray(found.labels) == names.index(name)
    rows, answers = np.asarray(found.rows)[mine], np.asarray(found.answers)[mine]
    of_class = np.asarray(state.statistics.classes[name])
    by_point = {of_class[row].tobytes(): names[answer] for row, answer in zip(rows, answers, strict=True)}
    keys = {digest: np.asarray(point).tobytes() for digest, point in state.kept.items()}
    stored = next(stored for stored in state.classes if stored.name == name)
    return {d: by_point[keys[d]] for d in stored.images if keys.get(d) in by_point}
