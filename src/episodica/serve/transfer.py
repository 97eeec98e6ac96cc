"""A model leaves as a ZIP, and another one comes as one: a stranger's, so nothing in it is believed."""

import asyncio
import logging
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import IO

from episodica.classifier.exact_edits import joining
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import Draft
from episodica.classifier.model_copy import POINTER, read_model
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.new_model import nothing_known
from episodica.classifier.state import ModelState
from episodica.classifier.vault import Vault
from episodica.data.archive import unpack
from episodica.data.decode import Unreadable
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.files.foreign_text import printable
from episodica.serve.changes import after_change
from episodica.serve.limits import Limits
from episodica.serve.messages import Changed
from episodica.serve.quality import exact
from episodica.serve.uploads import Refusal, UploadReader, checked_name
from episodica.serve.worker import ModelWorker, Snapshot

log = logging.getLogger(__name__)
CHUNK = 1 << 20
IN_MEMORY = 1 << 20  # bytes of an archive; the rest waits in a file without a name
MOST_FILES = 200_000
LARGER = 4  # times the archive, once it is unpacked
SECONDS = 10.0  # to decode one image
EXPORT = """import sys
from pathlib import Path
from episodica.classifier.export import export_onnx, exportable
export_onnx(exportable(Path(sys.argv[1])), Path(sys.argv[2]))"""


def model_zip(folder: ModelFolder) -> IO[bytes]:
    """The whole folder, as one state of it."""
    while True:
        version = folder.version()
        try:
            files = read_model(folder.path)
        except (OSError, InputError):
            if version == folder.version():
                raise
            continue
        if version == folder.version():
            return _zipped({"/".join(place): data for place, data in files.items()})


def onnx_zip(folder: ModelFolder) -> IO[bytes]:
    """Made in a process of its own: torch translates one network at a time, and takes its time."""
    sentence = "this model cannot be exported as ONNX on this server; its log says why"
    with TemporaryDirectory() as place:
        command = [sys.executable, "-c", EXPORT, str(folder.path), place]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            log.error("%s", printable(done.stderr[-2000:]))
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence)
        return _zipped({path.name: path.read_bytes() for path in sorted(Path(place).iterdir())})


def _zipped(files: dict[str, bytes]) -> IO[bytes]:
    file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - whoever sends it closes it
    with zipfile.ZipFile(file, "w") as package:  # images and weights are as small as they get
        for name, data in files.items():
            package.writestr(name, data)
    file.seek(0)
    return file  # type: ignore[return-value]


def in_chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK):
            yield chunk


async def received(body: AsyncIterator[bytes], file: IO[bytes]) -> None:
    """How much may come, and for how long, was checked on its way."""
    async for chunk in body:
        await asyncio.to_thread(file.write, chunk)


@dataclass(frozen=True, eq=False)
class Guest:
    """A model that was sent: checked, and its images decoded and drawn anew."""

    state: ExactState
    images: dict[str, str]  # how they are called now, by the digest that they had
    drawn: Vault


def guest(archive: Path, reader: UploadReader, place: Path) -> Guest:
    """What an archive holds, or a refusal that says what it is not."""
    try:
        room = LARGER * archive.stat().st_size + CHUNK
        unpack(archive, place, max_bytes=room, max_files=MOST_FILES)
        folder = ModelFolder(_root(place))
        state = folder.state()
        if not isinstance(state, ExactState):
            sentence = "only models with a frozen encoder are taken in, and this one's network was trained"
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence)
        for stored in state.classes:
            _require_name(stored.name, reader.limits)
        size = state.recogniser().image_size  # tried with an image
        drawn = Vault(Folder(place.with_name("drawn")))  # on the disk: thousands of images are more than memory holds
        images: dict[str, str] = {}
        for digest in dict.fromkeys(digest for stored in state.classes for digest in stored.images):
            data = folder.vault.read(digest)
            images[digest] = drawn.put(reader.decoder.decode(data, size, "image", reader.limits.image_pixels, SECONDS))
            room -= len(drawn.read(images[digest]))
            if room < 0:
                raise InputError("the images of a model that was sent are much larger once they are drawn anew")
        return Guest(state, images, drawn)
    except (InputError, Unreadable, OSError) as error:
        log.error("%s", printable(str(error)))
        sentence = "this is not a whole model as /export/model.zip gives it, or too large; the server's log says why"
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence) from None


def _require_name(name: str, limits: Limits) -> None:
    """Names come from a file, and are shown and typed as if they came with a form."""
    if checked_name(name, limits, "class") != name:
        sentence = "the name of a class has spaces around it, or accents as characters of their own: rename it first"
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, "class")


def _root(place: Path) -> Path:
    """The folder itself, or the only one in it."""
    folder = Folder(place)
    inner = folder.folders()
    return place / inner[0] if len(inner) == 1 and not folder.has(POINTER) else place


def take_in(now: Snapshot, worker: ModelWorker, sent: Guest, who: str) -> Changed:
    """All classes of another model that has the same encoder; an empty model takes its encoder, too."""
    other, folder = sent.state, worker.folder
    exact(now)

    def edit(state: ModelState) -> tuple[ModelState, Draft] | None:
        assert isinstance(state, ExactState)
        if _encoder(state) != _encoder(other):
            sentence = "its encoder is another one: start the server with a new name, and take it in there"
            raise Refusal(HTTPStatus.CONFLICT, sentence)
        joined = joining(state, other, lambda digest: folder.vault.take(sent.images[digest], sent.drawn))
        more = sum(map(len, joined.statistics.classes.values())) - sum(map(len, state.statistics.classes.values()))
        draft = Draft("import", tuple(stored.name for stored in other.classes), images=more, who=who)
        return (joined, draft) if more else None

    folder.change(edit, first=None if folder.exists else _blank(folder, other))
    return after_change(worker, now)


def _encoder(state: ExactState) -> tuple[object, ...]:
    return state.record.encoder.bare, state.config.backbone, state.config.image_size


def _blank(folder: ModelFolder, other: ExactState) -> ExactState:
    """A model that knows nothing, with the encoder of another one."""
    folder.encoders.take(other.record.encoder, other.encoders)
    record = other.record.model_copy(update={"classes": (), "history": (), "sessions": 0})
    return nothing_known(record, folder.encoders, other.config, other.statistics.width)
