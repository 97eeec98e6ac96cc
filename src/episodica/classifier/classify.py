"""Many images, answered as they come: decoded by all cores, embedded in batches, never more than a batch in memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

import numpy as np

from episodica.classifier.recogniser import Answer, Recogniser
from episodica.data.decode import Unreadable, decode_in_parallel
from episodica.data.image_formats import is_image_file, is_unread_image_file
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


def image_files(places: Iterable[Path]) -> list[Path]:
    """Files as they are, folders as all images in them, and patterns as what they match."""
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = sorted(path for path in place.rglob("*") if _is_image(path) and path.is_file())
            if not inside:
                raise InputError(f"{place} holds no image: name a folder that does, or the files")
            found += inside
        elif has_magic(str(place)) and not place.exists():
            matching = sorted(map(Path, glob(str(place), recursive=True)))  # noqa: PTH207 - the pattern may be absolute
            if not matching:
                raise InputError(f"nothing matches {place}")
            found += image_files(matching)
        else:
            found.append(place)
    return found


def _is_image(path: Path) -> bool:
    """Also of a kind that is not read: it is answered with the reason."""
    return is_image_file(path) or is_unread_image_file(path)


def answer_each(recogniser: Recogniser, images: Sequence[Picture]) -> Iterator[Answered]:
    _need_classes(recogniser)
    names = [str(image) if isinstance(image, str | Path) else f"image {i}" for i, image in enumerate(images)]
    for start in range(0, len(images), BATCH):
        batch = [encoded(image) for image in images[start : start + BATCH]]
        yield from _answered(recogniser, batch, names[start : start + BATCH])


def answer_stream(recogniser: Recogniser, lines: Iterable[Path]) -> Iterator[Answered]:
    """Paths that come one after another, perhaps slowly: each is answered before the next is waited for."""
    _need_classes(recogniser)
    for path in lines:
        yield from _answered(recogniser, [encoded(path)], [str(path)])


def _need_classes(recogniser: Recogniser) -> None:
    if not recogniser.names:
        raise InputError(
            "no class is known: give images of some classes as support, or teach the model with `learn` or `remember`"
        )


def _answered(recogniser: Recogniser, batch: Sequence[Any], names: Sequence[str]) -> Iterator[Answered]:
    problems, vectors = embedded(recogniser, batch, names)
    answers = iter(recogniser.answers(vectors) if vectors is not None else ())
    for name, problem in zip(names, problems, strict=True):
        yield Answered(name, None, problem) if problem else Answered(name, next(answers))


def embedded(
    recogniser: Recogniser, batch: Sequence[Any], names: Sequence[str]
) -> tuple[list[str | None], np.ndarray | None]:
    """Of each image why it cannot be read, if so; and the embeddings of the others, none where there are none."""
    decoded = list(decode_in_parallel(batch, recogniser.image_size, names.__getitem__))
    squares = [image for image in decoded if not isinstance(image, Unreadable)]
    problems = [image.reason if isinstance(image, Unreadable) else None for image in decoded]
    return problems, recogniser.embed(np.stack(squares)) if squares else None
