"""A model on the disk. Whatever happens while it is changed, it is in the old state or in the new one.

    model.json            which state is the present one, and which was before it
    states/NNNNNN-DIGEST  state.json, weights.safetensors, prototypes.safetensors, checksums.json
    images/DIGEST.png     exemplars, support and held-out images of both states
    work/                 a call to learn that is under way or was interrupted

A change writes a new state beside the present one, then replaces `model.json`, then removes what neither state needs.
The name of a state ends with the digest of its checksums, so `model.json` vouches for every byte.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from episodica.classifier.images import Picture, stacked
from episodica.classifier.state import FORMAT, ModelState, StateRecord, Step, StoredClass
from episodica.classifier.vault import Vault, digest_of
from episodica.errors import FolderInUse, InputError, nearest
from episodica.records.files import remove_leftovers, write_atomically, write_json

POINTER, OWN = "model.json", {"model.json", "states", "images", "work", ".lock"}


@dataclass(frozen=True)
class Pointer:
    """What `model.json` says."""

    state: str
    previous: str | None


class ModelFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.vault = Vault(self.path / "images")
        self.work = self.path / "work"

    @property
    def exists(self) -> bool:
        return (self.path / POINTER).exists()

    def state(self) -> ModelState:
        """The present state, as one: where it is replaced while it is read, the new one is read."""
        pointer = self._pointer()
        while True:
            try:
                return self._load(pointer.state)
            except InputError:
                before, pointer = pointer, self._pointer()
                if before == pointer:
                    raise

    @contextmanager
    def writing(self, *, wait: bool = False) -> Iterator[None]:
        """The only writer, from here on; a second one waits or is refused."""
        if self.path.exists() and not self.exists:
            self._require_own()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / ".lock")
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            raise FolderInUse(
                f"another process is changing {self.path}: try again when it is done, or pass --wait to wait for it"
            ) from None
        except OSError as error:
            raise InputError(
                f"cannot write to {self.path}: {error.strerror or error}; choose a folder that you may write to"
            ) from None
        try:
            self._clean()
            yield
        finally:
            lock.release()

    def _require_own(self) -> None:
        foreign = sorted({entry.name for entry in self.path.iterdir()} - OWN) if self.path.is_dir() else ["a file"]
        if foreign:
            raise InputError(f"{self.path} is no model and not empty (it has {foreign[0]}): choose another name")

    def remember(self, support: Mapping[str, Sequence[Picture]], *, wait: bool = False) -> ModelState:
        """Add classes, or replace remembered ones, by a few images each."""
        with self.writing(wait=wait):
            state = self.state()
            fixed = {stored.name for stored in state.classes if stored.kind != "remembered"} & set(support)
            if fixed:
                raise InputError(f'class "{min(fixed)}" was learned by training: take another name, or forget it first')
            recogniser = state.recogniser()
            squares = {name: stacked(images, recogniser.image_size) for name, images in support.items()}
            added = recogniser.only({name: recogniser.embed(images) for name, images in squares.items()}).known
            stay = [i for i, stored in enumerate(state.classes) if stored.name not in support]
            stored = [
                StoredClass(name=name, kind="remembered", images=tuple(dict.fromkeys(map(self.vault.put, images))))
                for name, images in squares.items()
            ]
            record = state.record.model_copy(
                update={
                    "classes": (*(state.classes[i] for i in stay), *stored),
                    "history": (*state.history, Step(what="remember", when=now(), classes=tuple(support))),
                }
            )
            prototypes = torch.cat([state.prototypes[stay], *(known.prototype[None] for known in added)])
            return self.commit(ModelState("", record, state.weights, prototypes))

    def forget(self, name: str, *, wait: bool = False) -> ModelState:
        """Remove a class from the present state and from the one before, and all work in progress; for good."""
        with self.writing(wait=wait):
            pointer = self._pointer()
            state = self._load(pointer.state)
            before = self._load(pointer.previous) if pointer.previous else None
            names = [*state.record.names, *(before.record.names if before else ())]
            if name not in names:
                raise InputError(f'there is no class "{name}": {nearest(name, names) if names else "none is known"}')
            number = _number(pointer.state)
            previous = self._write(before.without(name), number) if before else None
            now_id = self._write(state.without(name), number + 1)
            shutil.rmtree(self.work, ignore_errors=True)
            self._point(Pointer(now_id, previous))
            self._clean()
            return self._load(now_id)

    def undo(self, *, wait: bool = False) -> ModelState:
        """Back to the state before the last change, which is then gone."""
        with self.writing(wait=wait):
            pointer = self._pointer()
            if pointer.previous is None:
                raise InputError(f"{self.path} has no state before this one: only the last change can be undone, once")
            self._load(pointer.previous)
            self._point(Pointer(pointer.previous, None))
            self._clean()
            return self._load(pointer.previous)

    def commit(self, state: ModelState) -> ModelState:
        """Make this the present state; what was present becomes the one before. For the writer only."""
        pointer = self._pointer() if self.exists else None
        id = self._write(state, _number(pointer.state) + 1 if pointer else 1)
        self._point(Pointer(id, pointer.state if pointer else None))
        self._clean()
        return self._load(id)

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())

    def _write(self, state: ModelState, number: int) -> str:
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.weights.items()}
        files = {
            "state.json": state.record.model_dump_json(indent=1).encode(),
            "weights.safetensors": save(tensors),
            "prototypes.safetensors": save({"prototypes": state.prototypes.contiguous()}),
        }
        files["checksums.json"] = json.dumps({name: digest_of(data) for name, data in files.items()}).encode()
        id = f"{number:06d}-{digest_of(files['checksums.json'])}"
        for name, data in files.items():
            write_atomically(self._folder(id) / name, lambda part, data=data: part.write(data))
        return id

    def _point(self, pointer: Pointer) -> None:
        write_json(self.path / POINTER, {"format": FORMAT, "state": pointer.state, "previous": pointer.previous})

    def _pointer(self) -> Pointer:
        path = self.path / POINTER
        if not path.exists():
            what = "there is no such folder" if not self.path.exists() else f"it has no {POINTER}"
            raise InputError(f"{self.path} is no model: {what}; `episodica learn` makes one")
        try:
            found = json.loads(path.read_text())
            format = found["format"]
            pointer = Pointer(found["state"], found["previous"])
            if not isinstance(format, int) or _number(pointer.state) < 1:
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{path} is damaged or not of a model: restore the folder from a copy") from None
        if format != FORMAT:
            raise InputError(f"{self.path} has format {format} and this version reads {FORMAT}: update episodica")
        return pointer

    def _load(self, id: str) -> ModelState:
        folder = self._folder(id)
        try:
            checksums = (folder / "checksums.json").read_bytes()
            expected: dict[str, str] = json.loads(checksums)
            files = {name: (folder / name).read_bytes() for name in expected}
            wrong = [name for name, data in files.items() if digest_of(data) != expected[name]]
            if wrong or id != f"{_number(id):06d}-{digest_of(checksums)}":
                raise ValueError(", ".join(wrong) or "checksums.json")
            record = StateRecord.model_validate_json(files["state.json"])
            prototypes: Tensor = load(files["prototypes.safetensors"])["prototypes"]
            return ModelState(id, record, load(files["weights.safetensors"]), prototypes)
        except FileNotFoundError as error:
            problem = f"{Path(error.filename).name} is missing"
        except (OSError, ValueError, KeyError, TypeError, SafetensorError, ValidationError) as error:
            problem = f"{error if isinstance(error, ValueError) and str(error) in _FILES else 'a file'} is damaged"
        raise InputError(f"the state {folder} cannot be read, {problem}: restore the folder from a copy")

    def _clean(self) -> None:
        """Remove states, images and parts of files that no state needs."""
        remove_leftovers(self.path)
        if not self.exists:
            return
        pointer = self._pointer()
        needed = {pointer.state, pointer.previous}
        if self._work_of() != pointer.state:
            shutil.rmtree(self.work, ignore_errors=True)
        for folder in (self.path / "states").iterdir():
            if folder.name not in needed:
                shutil.rmtree(folder)
        self.vault.keep_only(set().union(*(self._load(id).record.digests for id in needed if id)))

    def _work_of(self) -> str | None:
        """The state from which a call in progress learns on."""
        try:
            return json.loads((self.work / "call.json").read_text())["state"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _folder(self, id: str) -> Path:
        return self.path / "states" / id


_FILES = {"state.json", "weights.safetensors", "prototypes.safetensors", "checksums.json"}


def _number(id: Any) -> int:
    number, _, digest = id.partition("-")
    if len(digest) != 32 or not set(digest) <= set("0123456789abcdef"):
        raise ValueError(f"no state is called {id}")
    return int(number)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
