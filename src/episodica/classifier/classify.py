"""Many images, answered as they come."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from episodica.classifier.embed import embedded, look_at_each
from episodica.classifier.recogniser import Answer, Recogniser
from episodica.data.pictures import Picture, encoded
from episodica.errors import InputError

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
    named = ((_name(image, i), encoded(image)) for i, image in enumerate(images))
    return look_at_each(recogniser, named, answer_batch)


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


def _name(image: Picture, number: int) -> str:
    return str(image) if isinstance(image, str | Path) else f"image {number}"
