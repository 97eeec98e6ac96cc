"""What clients send becomes names and images, or a refusal that says which of it was wrong.

Nothing that a client sends is ever a path here: names are only compared and written down, files only decoded.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import BinaryIO

import numpy as np

from episodica.classifier.class_names import class_name
from episodica.classifier.images import stack_squares
from episodica.data.decode import Unreadable
from episodica.data.decoding_process import DecodingProcess
from episodica.serve.limits import MIB, Limits

FORBIDDEN = frozenset("<>/\\")
SHOWN = 80  # characters of a file's name


class Refusal(Exception):
    """What a client did that is not answered, and where: the form's field and the place in it, counted from 0."""

    def __init__(self, status: HTTPStatus, sentence: str, field: str | None = None, index: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.field, self.index = status, sentence, field, index


@dataclass(frozen=True)
class Upload:
    """A file of a form: its place there, the name it came with, and its bytes."""

    field: str
    index: int
    name: str
    file: BinaryIO


class Deadline:
    """How long the work on one request may go on. It is asked between two images, and by whoever decodes one."""

    def __init__(self, limits: Limits) -> None:
        self._ends, self._seconds = time.monotonic() + limits.working_seconds, limits.working_seconds

    @property
    def seconds_left(self) -> float:
        return self._ends - time.monotonic()

    def check(self) -> None:
        if self.seconds_left < 0:
            raise Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"this takes longer than {self._seconds:g} seconds: send fewer or smaller images at once",
            )


def checked_name(text: str, limits: Limits, field: str, index: int | None = None) -> str:
    """A class name that is safe to show, to write and to type."""
    name = class_name(text).strip()
    if not name:
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "a class needs a name", field, index)
    if len(name) > limits.name_length:
        sentence = f"a class name may have {limits.name_length} characters, and this one has {len(name)}"
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, field, index)
    if name.startswith(".") or not name.isprintable() or FORBIDDEN & set(name):
        sentence = "a class name may not begin with a dot nor have slashes, angle brackets or control characters"
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, field, index)
    return name


def shown_name(filename: str | None) -> str:
    """The last part of a file's name, without what cannot be printed."""
    last = PurePosixPath((filename or "").replace("\\", "/")).name
    return "".join(c for c in last if c.isprintable())[:SHOWN] or "image"


def check_count(count: int, limits: Limits, field: str) -> None:
    if count > limits.images:
        sentence = f"a request may have {limits.images} images, and this one has {count}"
        raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence, field)


@dataclass(frozen=True)
class UploadReader:
    """Reads the images of requests within limits, in a process that can be ended."""

    limits: Limits
    decoder: DecodingProcess

    def square(self, upload: Upload, data: bytes, size: int, deadline: Deadline) -> np.ndarray:
        """uint8 [size, size, 3], or `Unreadable`."""
        deadline.check()
        return self.decoder.decode(data, size, upload.name, self.limits.image_pixels, deadline.seconds_left)

    def pixels(self, uploads: Sequence[Upload], size: int, deadline: Deadline) -> np.ndarray:
        """uint8 [M, size, size, 3]"""
        squares = []
        for upload in uploads:
            deadline.check()
            with refusing(upload):
                squares.append(self.square(upload, self.read(upload), size, deadline))
        return stack_squares(squares, size)

    def read(self, upload: Upload) -> bytes:
        data = upload.file.read(self.limits.image_bytes + 1)
        if len(data) > self.limits.image_bytes:
            sentence = f"{upload.name}: an image may have {self.limits.image_bytes // MIB} MiB; send a smaller copy"
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence, upload.field, upload.index)
        return data


@contextmanager
def refusing(upload: Upload) -> Iterator[None]:
    """What cannot be read is no image of a request."""
    try:
        yield
    except Unreadable as error:
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), upload.field, upload.index) from None
