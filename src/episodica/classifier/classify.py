"""Many images, answered as they come: decoded by all cores, embedded in batches, never more than a batch in memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from episodica.classifier.recogniser import Answer, Recogniser
from episodica.data.decode import Encoded, Unreadable, decode_in_parallel
from episodica.data.pictures import Picture, encoded
from episodica.errors import InputError

BATCH = 50  # few enough that the first answers come in the first seconds
FACTS = ("class", "probability", "unknown", "strangeness", "limit")  # of an answer, as JSON and CSV name them


@dataclass(frozen=True)
class Answered:
    """An image with its answer, or with why it cannot be read."""

    image: str
    answer: Answer | None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        if self.answer is None:
            return {"image": self.image, **dict.fromkeys(FACTS), "scores": {}, "error": self.error}
        best, probability, unknown, scores, strangeness, limit = self.answer
        facts = dict(zip(FACTS, (best, probability, unknown, strangeness, limit), strict=True))
        return {"image": self.image, **facts, "scores": scores}


def answer_each(recogniser: Recogniser, images: Iterable[Picture]) -> Iterator[Answered]:
    need_classes(recogniser)
    return answer_named(recogniser, ((_name(image, i), encoded(image)) for i, image in enumerate(images)))


def answer_named(recogniser: Recogniser, images: Iterable[tuple[str, Encoded]]) -> Iterator[Answered]:
    """Of images with names."""
    left = iter(images)
    while batch := list(islice(left, BATCH)):
        yield from answer_batch(recogniser, [image for _, image in batch], [name for name, _ in batch])


def answer_stream(recogniser: Recogniser, lines: Iterable[Path]) -> Iterator[Answered]:
    """Paths that come one after another, perhaps slowly: each is answered before the next is waited for."""
    need_classes(recogniser)
    for path in lines:
        yield from answer_batch(recogniser, [encoded(path)], [str(path)])


def need_classes(recogniser: Recogniser) -> None:
    if not recogniser.names:
        raise InputError(
            "no class is known: give images of some classes as support, or teach the model with `learn` or `remember`"
        )


def answer_batch(
    recogniser: Recogniser, batch: Sequence[Any], names: Sequence[str], threads: int | None = None
) -> list[Answered]:
    """Of images that are embedded together: which ones those are may decide the last bit of an answer."""
    problems, vectors = embedded(recogniser, batch, names, threads)
    answers = iter(recogniser.answers(vectors) if vectors is not None else ())
    return [
        Answered(name, None, problem) if problem else Answered(name, next(answers))
        for name, problem in zip(names, problems, strict=True)
    ]


def embedded(
    recogniser: Recogniser, batch: Sequence[Any], names: Sequence[str], threads: int | None = None
) -> tuple[list[str | None], np.ndarray | None]:
    """Of each image why it cannot be read, if so; and the embeddings of the others, none where there are none."""
    decoded = list(decode_in_parallel(batch, recogniser.image_size, names.__getitem__, threads=threads))
    squares = [image for image in decoded if not isinstance(image, Unreadable)]
    problems = [image.reason if isinstance(image, Unreadable) else None for image in decoded]
    return problems, recogniser.embed(np.stack(squares)) if squares else None


def _name(image: Picture, number: int) -> str:
    return str(image) if isinstance(image, str | Path) else f"image {number}"
