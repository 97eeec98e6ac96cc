"""What a model says of images, and so where they belong."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from episodica.classifier.embed import embedded
from episodica.classifier.recogniser import Answer, Recogniser
from episodica.classifier.summaries import percent
from episodica.data.decode import MAX_BYTES
from episodica.files.digest import digest_of
from episodica.files.openat import Refused
from episodica.files.placing import Spot
from episodica.sorting.ledger import Image
from episodica.sorting.order import source

BYTES_AT_ONCE = 64_000_000  # of files that are looked at together


@dataclass(frozen=True)
class Model:
    """A model as it answers now, and what of it decides where an image goes."""

    state: str
    recogniser: Recogniser
    certainty: float  # below which an answer is not acted upon


@dataclass(frozen=True)
class Verdict:
    """Where an image belongs: with a class, with the unsure, with the unknown; or nowhere, with the reason."""

    why: str
    digest: str | None = None
    answer: Answer | None = None
    sure: bool = False
    place: bytes | None = None  # among images, float32 [D]; of unknown ones
    reach: float | None = None  # that such places of one class are apart at most

    @property
    def facts(self) -> dict[str, Any]:
        """As the ledger has them."""
        if self.answer is None:
            return {"why": self.why, "digest": self.digest}
        best, probability, _, _, strangeness, limit = self.answer
        return {
            "why": self.why,
            "digest": self.digest,
            "class_": best,
            "probability": probability,
            "strangeness": strangeness,
            "limit": limit,
        }


Looked = dict[
    int, "Verdict | str | None"
]  # by number: what is said of an image, why it has no bytes, or that it is gone


def look_each(model: Model, batches: Iterable[Sequence[Image]]) -> Iterator[tuple[Sequence[Image], Looked]]:
    for batch in batches:
        yield batch, look_at(model, read_batch(batch))


def look_at(model: Model, read: Mapping[int, "bytes | str | None"], threads: int | None = None) -> Looked:
    """Of images that were read."""
    verdicts = look(model, {number: data for number, data in read.items() if isinstance(data, bytes)}, threads)
    return {number: verdicts[number] if isinstance(data, bytes) else data for number, data in read.items()}


def looked_at_together(images: Sequence[Image]) -> Sequence[Image]:
    """As many of the first ones as are read at once."""
    size = 0
    for number, image in enumerate(images):
        size += image.bytes
        if number and size > BYTES_AT_ONCE:
            return images[:number]
    return images


def read_batch(images: Sequence[Image]) -> dict[int, "bytes | str | None"]:
    """Their bytes, by their numbers; or why there are none, and nothing where the file is gone."""
    return {image.id: _read(source(image), image) for image in images}


def _read(place: Spot, image: Image) -> "bytes | str | None":
    try:
        with place.folder.open(place.name) as file:
            status = os.fstat(file.fileno())
            if status.st_size > MAX_BYTES:
                return f"has {status.st_size:,} bytes, more than {MAX_BYTES:,}"
            data = file.read(status.st_size + 1)
    except FileNotFoundError:
        return None
    except Refused as error:
        return str(error)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    if (len(data), status.st_mtime_ns) != (image.bytes, image.modified):
        return "changed while it was looked at: sort again"
    return data


def look(model: Model, images: dict[int, bytes], threads: int | None = None) -> dict[int, Verdict]:
    """Of encoded images, by their numbers."""
    names = [str(number) for number in images]
    problems, vectors = embedded(model.recogniser, list(images.values()), names, threads)
    digests = [digest_of(data) for data in images.values()]
    if vectors is None:
        readable = iter(())
    else:
        places = model.recogniser.places(vectors)
        values = np.asarray(places.values, np.float32)
        readable = zip(model.recogniser.answers(vectors), values, [places.reach] * len(values), strict=True)
    found: dict[int, Verdict] = {}
    for number, digest, problem in zip(images, digests, problems, strict=True):
        if problem:
            found[number] = Verdict(f"cannot be read: {problem}", digest)
        else:
            found[number] = _verdict(model, digest, *next(readable))
    return found


def _verdict(model: Model, digest: str, answer: Answer, place: np.ndarray, reach: float | None) -> Verdict:
    if answer.unknown or answer.best is None:
        strange = "no class is known"
        if answer.strangeness is not None and answer.limit is not None:
            strange = f"strangeness {answer.strangeness:.2f}, more than {answer.limit:.2f}: fits no class"
        return Verdict(strange, digest, answer, place=place.tobytes(), reach=reach)
    sure = answer.probability >= model.certainty
    why = f"{percent(answer.probability)} certain"
    return Verdict(why if sure else f"{why}, less than {percent(model.certainty)}", digest, answer, sure=sure)
