"""Answers as they come: JSON Lines, one for each image, each sent before the next image is looked at."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from io import BytesIO

from fastapi import UploadFile

from episodica.serve.messages import Classified, Recognised
from episodica.serve.uploads import Refusal, Upload, shown_name

MEDIA_TYPE = "application/jsonl"

Answer = Callable[[Upload], Awaitable[Classified]]


def wants_lines(accept: str | None) -> bool:
    kinds = [part.partition(";")[0].strip().lower() for part in (accept or "").split(",")]
    return any(kind in (MEDIA_TYPE, "application/x-ndjson") for kind in kinds)


async def in_memory(files: Sequence[UploadFile]) -> list[Upload]:
    """A form is closed when its answer begins; what is still to be looked at stays here."""
    return [Upload("images", i, shown_name(file.filename), BytesIO(await file.read())) for i, file in enumerate(files)]


async def lines(uploads: Sequence[Upload], answer: Answer) -> AsyncIterator[str]:
    """What cannot be answered is a line as well, and does not keep the others from theirs."""
    for upload in uploads:
        try:
            found = await answer(upload)
        except Refusal as error:
            yield json.dumps({"image": upload.name, "error": error.sentence}) + "\n"
        else:
            (one,) = found.answers
            yield json.dumps({"state": found.state, **_plain(one)}) + "\n"


def _plain(one: Recognised) -> dict[str, object]:
    return one.model_dump(mode="json", by_alias=True)
