"""A model on the disk. Whatever happens while it is changed, it is in the old state or in the new one.

    model.json            which state is the present one, and which the last change can be undone to
    states/NNNNNN-DIGEST  state.json, weights.safetensors, prototypes.safetensors, checksums.json
    images/DIGEST.png     exemplars, support and held-out images of both states
    work/                 a call to learn that is under way or was interrupted, from the weights of the present state

A change writes a new state beside the present one, then replaces `model.json`, then removes what neither state needs.
The name of a state ends with the digest of its checksums, so `model.json` vouches for every byte.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from episodica.classifier.encoder_files import EncoderFiles
from episodica.classifier.images import stacked
from episodica.classifier.recogniser import Recogniser
from episodica.classifier.state import EXACT_FORMAT, TRAINED_FORMAT, ModelState
from episodica.classifier.state_files import StateFiles, number_of
from episodica.classifier.trained_state import weights_digest
from episodica.classifier.vault import Vault
from episodica.data.pictures import Picture
from episodica.errors import InputError, nearest
from episodica.files.door import Folder, Refused
from episodica.files.lock import LOCK, locked
from episodica.files.parsing import parse_json

POINTER, CALL = "model.json", "call.json"
OWN = {POINTER, "states", "images", "encoder", "work", LOCK}
FORMATS = (TRAINED_FORMAT, EXACT_FORMAT)
MOST_POINTER, MOST_CALL = 2**16, 2**26  # bytes

Embed = Callable[[Recogniser, Tensor], Tensor]  # uint8 [M, 3, S, S] -> [M, D]


@dataclass(frozen=True)
class Pointer:
    """What `model.json` says."""

    state: str
    previous: str | None
    forgot: bool = False  # the last change was to forget a class

    @property
    def needed(self) -> set[str]:
        return {id for id in (self.state, self.previous) if id}


class Forgotten(NamedTuple):
    """The state after a class was removed, if there is any, and whether weights that stay were trained on the class."""

    state: ModelState | None
    trained: bool


class ModelFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.folder = Folder(self.path)
        self.vault = Vault(self.folder / "images")
        self.work = self.folder / "work"
        self.encoders = EncoderFiles(self.folder / "encoder")
        self._states = StateFiles(self.folder / "states", self.encoders)

    @property
    def exists(self) -> bool:
        return self.path.is_dir() and self.folder.has(POINTER)

    def version(self) -> bytes:
        """What changes with every change of the model."""
        return self.folder.read(POINTER, MOST_POINTER)

    def state(self) -> ModelState:
        """The present state, as one: where it is replaced while it is read, the new one is read."""
        pointer = self._pointer()
        while True:
            try:
                return self._states.load(pointer.state)
            except InputError:
                before, pointer = pointer, self._pointer()
                if before == pointer:
                    raise

    @contextmanager
    def writing(self, *, wait: bool = False) -> Iterator[None]:
        """The only writer, from here on; a second one waits or is refused. What killed ones left is removed."""
        with self._locked(wait):
            self._clean()
            yield

    @contextmanager
    def _changing(self, wait: bool) -> Iterator[None]:
        """The only writer of a model that there is: where there is none, none is made."""
        self._pointer()
        with self.writing(wait=wait):
            yield

    @contextmanager
    def _locked(self, wait: bool) -> Iterator[None]:
        if self.path.exists() and not self.exists:
            self._require_own()
        busy = f"another process is changing {self.path}: try again when it is done, or choose to wait for it"
        with locked(self.folder, busy=None if wait else busy, unwritable="choose a folder that you may write to"):
            yield

    def _require_own(self) -> None:
        """Without a model, what has our names is ours only beside the lock that we take first."""
        names = [entry.name for entry in self.folder.entries()] if self.path.is_dir() else ["a file"]
        foreign = [name for name in names if name not in OWN or LOCK not in names]
        if foreign:
            raise InputError(f"{self.path} is no model and not empty (it has {foreign[0]}): choose another name")

    def remember(
        self,
        support: Mapping[str, Sequence[Picture]],
        *,
        wait: bool = False,
        embed: Embed = lambda recogniser, images: recogniser.embed(images),
    ) -> ModelState:
        """Add classes, or replace remembered ones, by a few images each. Where `embed` raises, nothing is written."""
        with self._changing(wait):
            state = self.state()
            fixed = {stored.name for stored in state.classes if stored.kind != "remembered"} & set(support)
            if fixed:
                raise InputError(
                    f'class "{min(fixed)}" came with a call to learn: take another name, or forget it first'
                )
            recogniser, most = state.recogniser(), state.record.kept_of_a_class
            squares = {name: stacked(images, recogniser.image_size) for name, images in support.items()}
            vectors = {name: embed(recogniser, images) for name, images in squares.items()}
            recogniser.only(vectors)  # refuses what is no class
            kept = {name: tuple(dict.fromkeys(map(self.vault.put, found[:most]))) for name, found in squares.items()}
            return self.commit(state.remembering(vectors, kept, now()))

    def forget(self, name: str, *, wait: bool = False) -> "Forgotten":
        """Remove a class from the present state, the state before and all work in progress; for good.

        The state before is from before an earlier change: to undo that one instead would be a surprise.
        Where a class is only in what a killed process left behind, removing that is all there is to do: images that no
        state knows may be of the class, whether its name is found or not.
        """
        if not self.exists and self.folder.status(LOCK) is None:
            self._pointer()  # is no model
        with self._locked(wait):
            if not self.exists:
                return self._forget_first_call(name)
            pointer = self._pointer()
            state = self._states.load(pointer.state)
            before = self._states.load(pointer.previous) if pointer.previous else None
            left = self._states.leftovers(pointer.needed)
            records = [one.record for one in (state, before) if one]
            names = {known for record in (*records, *left) for known in record.names} | self._names_in_work()
            if name not in names:
                if self._clean():
                    return Forgotten(state, trained=False)
                raise InputError(f'there is no class "{name}": {nearest(name, names) if names else "none is known"}')
            self.drop_work()
            if any(name in record.names for record in records):
                id = self._states.write(state.without(name), number_of(pointer.state) + 1)
                pointer = Pointer(id, None, forgot=True)
                self._point(pointer, state)
            self._clean()
            trained = not state.exact and any(record.kind_of(name) == "learned" for record in (*records, *left))
            return Forgotten(self._states.load(pointer.state), trained)

    def _forget_first_call(self, name: str) -> "Forgotten":
        """Of a call to learn that was killed before there was a model, nothing is of use without the class."""
        named = name in self._names_in_work()
        if named:
            self.drop_work()
        if not self._clean() and not named:
            raise InputError(f'there is no class "{name}" in {self.path}, which holds no model yet')
        return Forgotten(None, trained=False)

    def undo(self, *, wait: bool = False) -> ModelState:
        """Back to the state before the last change, which is then gone."""
        with self._changing(wait):
            pointer = self._pointer()
            if pointer.forgot:
                raise InputError(f"the last change of {self.path} was to forget a class, which cannot be undone")
            if pointer.previous is None:
                raise InputError(f"{self.path} has no state before this one: only the last change can be undone, once")
            previous = self._states.load(pointer.previous)
            self._point(Pointer(pointer.previous, None), previous)
            self._clean()
            return self._states.load(pointer.previous)

    def commit(self, state: ModelState) -> ModelState:
        """Make this the present state; what was present becomes the one before. For the writer only."""
        pointer = self._pointer() if self.exists else None
        id = self._states.write(state, number_of(pointer.state) + 1 if pointer else 1)
        self._point(Pointer(id, pointer.state if pointer else None), state)
        self._clean()
        return self._states.load(id)

    def bytes(self) -> int:
        return sum(entry.status.st_size for _, entry in self.folder.walk() if entry.is_file)

    def _point(self, pointer: Pointer, state: ModelState) -> None:
        self.folder.write_json(POINTER, {"format": state.record.format, **asdict(pointer)})

    def _pointer(self) -> Pointer:
        path = self.path / POINTER
        if not self.exists:
            what = "there is no such folder" if not self.path.exists() else f"it has no {POINTER}"
            raise InputError(f"{self.path} is no model: {what}; `episodica learn` makes one")
        try:
            found = parse_json(self.version())
            format = found["format"]
            pointer = Pointer(found["state"], found["previous"], bool(found.get("forgot")))
            if not isinstance(format, int) or min(map(number_of, pointer.needed)) < 1:
                raise ValueError
        except Refused:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{path} is damaged or not of a model: restore the folder from a copy") from None
        if format not in FORMATS:
            raise InputError(
                f"{self.path} has format {format} and this version reads {TRAINED_FORMAT} and {EXACT_FORMAT}: update "
                "episodica"
            )
        return pointer

    def _clean(self) -> bool:
        """Remove images, states and parts of files that no state needs; states last, as they tell what is left.

        Whether anything was there to remove.
        """
        before = sum(1 for _ in self.folder.walk())
        self.folder.remove_leftovers()
        pointer = self._pointer() if self.exists else None
        states = {id: self._states.load(id) for id in pointer.needed} if pointer else {}
        call = self.call()
        if "weights" not in call or (pointer and call["weights"] != weights_digest(states[pointer.state].weights)):
            self.drop_work()
        self.vault.keep_only(set().union(*(state.record.digests for state in states.values())))
        self.encoders.keep_only({digest for state in states.values() for digest in state.encoder_digests})
        self._states.keep_only(states)
        return sum(1 for _ in self.folder.walk()) != before

    def drop_work(self) -> None:
        """What says what it is goes last."""
        if "work" in self.folder.folders():
            for entry in self.work.entries():
                if entry.name != CALL:
                    self.work.remove_tree(entry.name)
        self.folder.remove_tree("work")

    def call(self) -> dict[str, Any]:
        """What a call to learn that is under way, or was interrupted, has written about itself."""
        try:
            found = parse_json(self.work.read(CALL, MOST_CALL))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _names_in_work(self) -> set[str]:
        names = self.call().get("classes", ())
        return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
