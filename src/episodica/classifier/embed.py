"""Many images, looked at as they come: decoded by all cores, embedded in batches, never more than a batch in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from episodica.classifier.images import stack_squares
from episodica.classifier.recogniser import Recogniser
from episodica.data.decode import Encoded, Unreadable, decode_in_parallel

BATCH = 50  # few enough that the first answers come in the first seconds

T = TypeVar("T")
# What is found on images that are embedded together, given with their names and a number of threads. Which images those
# are may decide the last bit.
Look = Callable[[Recogniser, Sequence[Any], Sequence[str], int | None], list[T]]


@dataclass(frozen=True, eq=False)
class EmbeddedImage:
    """An image with its embedding, float32 [D], or with why it cannot be read."""

    image: str
    vector: np.ndarray | None
    error: str | None = None


def look_at_each(recogniser: Recogniser, images: Iterable[tuple[str, Encoded]], look: Look[T]) -> Iterator[T]:
    """Of images with names."""
    left = iter(images)
    while batch := list(islice(left, BATCH)):
        yield from look(recogniser, [image for _, image in batch], [name for name, _ in batch], None)


def embed_batch(
    recogniser: Recogniser, batch: Sequence[Any], names: Sequence[str], threads: int | None = None
) -> list[EmbeddedImage]:
    problems, vectors = embedded(recogniser, batch, names, threads)
    rows = iter(() if vectors is None else np.asarray(vectors, np.float32).reshape(len(vectors), -1))
    return [
        EmbeddedImage(name, None, problem) if problem else EmbeddedImage(name, next(rows))
        for name, problem in zip(names, problems, strict=True)
    ]


def embedded(
    recogniser: Recogniser, batch: Sequence[Any], names: Sequence[str], threads: int | None = None
) -> tuple[list[str | None], np.ndarray | None]:
    """Of each image why it cannot be read, if so; and the embeddings of the others, none where there are none. Of some
    it may be known already that they cannot be read."""
    numbers = [i for i, image in enumerate(batch) if not isinstance(image, Unreadable)]
    problems = [image.reason if isinstance(image, Unreadable) else None for image in batch]
    images = [batch[i] for i in numbers]
    squares: list[np.ndarray] = []
    decoded = decode_in_parallel(images, recogniser.image_size, lambda i: names[numbers[i]], threads=threads)
    for i, image in zip(numbers, decoded, strict=True):
        if isinstance(image, Unreadable):
            problems[i] = image.reason
        else:
            squares.append(image)
    return problems, recogniser.embed(np.stack(squares)) if squares else None


def width(recogniser: Recogniser) -> int:
    """Of an embedding, D."""
    return int(np.prod(recogniser.embed(stack_squares([], recogniser.image_size)).shape[1:]))
