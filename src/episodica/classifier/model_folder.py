"""A model on the disk. Whatever happens while it is changed, it is in the old state or in the new one.

    model.json            which state is the present one, and how changes can be undone
    states/NNNNNN-DIGEST  state.json, weights.safetensors, prototypes.safetensors, checksums.json
    images/DIGEST.png     exemplars, support and held-out images of all states that there is a way to
    history/              what was changed, and the ways back
    work/                 a call to learn that is under way or was interrupted, from the weights of the present state

A change writes a new state beside the present one, then replaces `model.json`, then removes what no state needs. Of a
model that was trained the state before is kept as it is; to states without training there is a way back.
The name of a state ends with the digest of its checksums, so `model.json` vouches for every byte.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from episodica.classifier.encoder_files import EncoderFiles
from episodica.classifier.history import (
    COMMAND,
    Change,
    Changes,
    Draft,
    HistoryFiles,
    marked_undone,
    now,
    undoable,
    with_line,
    without,
)
from episodica.classifier.images import stacked
from episodica.classifier.pointer import POINTER, Pointer, PointerFile
from episodica.classifier.recogniser import Recogniser
from episodica.classifier.sharing.hub_name import HubName
from episodica.classifier.state import ModelState
from episodica.classifier.state_files import StateFiles, number_of
from episodica.classifier.trained_state import weights_digest
from episodica.classifier.vault import Vault
from episodica.data.pictures import Picture
from episodica.errors import InputError, nearest
from episodica.files.address import Address
from episodica.files.door import Folder
from episodica.files.lock import LOCK, locked
from episodica.files.openat import is_part
from episodica.files.parsing import parse_json

CALL = "call.json"
OWN = {POINTER, "states", "images", "encoder", "history", "work", LOCK}
MOST_CALL = 2**26  # bytes

Embed = Callable[[Recogniser, np.ndarray], np.ndarray]  # uint8 [M, S, S, 3] -> [M, D]


class Outdated(InputError):
    """Somebody else has changed the model since."""


class Forgotten(NamedTuple):
    """The state after a class was removed, if there is any."""

    state: ModelState | None
    trained: bool = False  # whether weights that stay were trained on the class
    weights_gone: bool = False  # whether weights went with it: an adapter was trained on all classes


class ModelFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        name = HubName.parse(path)
        if name is not None:
            raise InputError(f"{name} is on the Hub, where nothing is changed: `episodica learn MODEL --from {name}`")
        address = Address.parse(path)
        if address is not None:
            raise InputError(f"{address} is only read: to go on with it, `episodica learn MODEL --from {address}`")
        self.folder = Folder(self.path)
        self.vault = Vault(self.folder / "images")
        self.work = self.folder / "work"
        self.encoders = EncoderFiles(self.folder / "encoder")
        self.history = HistoryFiles(self.folder / "history")
        self._pointer = PointerFile(self.folder)
        self._states = StateFiles(self.folder / "states", self.encoders)

    @property
    def exists(self) -> bool:
        return self._pointer.exists

    def version(self) -> bytes:
        """What changes with every change of the model."""
        return self._pointer.bytes()

    def state(self) -> ModelState:
        """The present state, as one: where it is replaced while it is read, the new one is read."""
        pointer = self._pointer.read()
        while True:
            try:
                return self._states.load(pointer.state)
            except InputError:
                before, pointer = pointer, self._pointer.read()
                if before == pointer:
                    raise

    def changes(self) -> Changes:
        """What was done to it, oldest first."""
        while True:
            pointer = self._pointer.read()
            try:
                return self.history.read(pointer.history)
            except InputError:
                if pointer == self._pointer.read():
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
        self._pointer.read()
        with self.writing(wait=wait):
            yield

    @contextmanager
    def _locked(self, wait: bool) -> Iterator[None]:
        self.require_free_or_model()
        busy = f"another process is changing {self.path}: try again when it is done, or choose to wait for it"
        with locked(self.folder, busy=None if wait else busy, unwritable="choose a folder that you may write to"):
            yield

    def require_free_or_model(self) -> None:
        """Refuse a folder of something else. Without a model, what has our names is ours only beside the lock that we
        take first. A first call that was killed leaves them, and perhaps a part of its `model.json`.
        """
        if self.exists or not self.path.exists():
            return
        names = [entry.name for entry in self.folder.entries()] if self.path.is_dir() else ["a file"]
        foreign = [name for name in names if LOCK not in names or not (name in OWN or is_part(name))]
        if foreign:
            raise InputError(f"{self.path} is no model and not empty (it has {foreign[0]}): choose another name")

    def remember(
        self,
        support: Mapping[str, Sequence[Picture]],
        *,
        replace: bool = True,
        wait: bool = False,
        who: str = COMMAND,
        embed: Embed = lambda recogniser, images: recogniser.embed(images),
    ) -> ModelState:
        """Add classes, or replace remembered ones, by a few images each. Where `embed` raises, nothing is written."""
        with self._changing(wait):
            state = self.state()
            if not replace and set(support) & set(state.record.names):
                raise Outdated("there is a class of this name by now: take another one")
            fixed = {stored.name for stored in state.classes if stored.kind != "remembered"} & set(support)
            if fixed:
                raise InputError(
                    f'class "{min(fixed)}" came with a call to learn: take another name, or forget it first'
                )
            recogniser, most = state.recogniser(), state.record.kept_of_a_class
            squares = {name: stacked(images, recogniser.image_size) for name, images in support.items()}
            vectors = {name: embed(recogniser, images) for name, images in squares.items()}
            recogniser.only(vectors)  # refuses what is no class
            kept = {name: tuple(map(self.vault.put, found[:most])) for name, found in squares.items()}
            what = "replace" if set(support) & set(state.record.names) else "remember"
            draft = Draft(what, tuple(support), images=sum(map(len, vectors.values())), who=who)
            return self.commit(state.remembering(vectors, kept, now()), draft)

    def change(
        self, edit: Callable[[ModelState], tuple[ModelState, Draft] | None], *, first: ModelState | None = None
    ) -> ModelState:
        """Make what `edit` does to the present state a change; where it gives nothing, nothing is written.

        Where there is no model yet, it is made of the state `first`.
        """
        if first is None:
            self._pointer.read()
        with self.writing():
            state = self.state() if self.exists else first
            assert state is not None
            edited = edit(state)
            if edited is None:
                return state
            if not self.exists:
                self._write(state)  # nothing is cleaned up: the images of the edit still wait for their state
            return self.commit(*edited)

    def forget(self, name: str, *, wait: bool = False, who: str = COMMAND) -> "Forgotten":
        """Remove a class from the present state, the state before, the history and all work in progress; for good.

        The state before is from before an earlier change: to undo that one instead would be a surprise.
        Where a class is only in what a killed process left behind, removing that is all there is to do: images that no
        state knows may be of the class, whether its name is found or not.
        """
        if not self.exists and self.folder.status(LOCK) is None:
            self._pointer.read()  # is no model
        with self._locked(wait):
            if not self.exists:
                return self._forget_first_call(name)
            pointer = self._pointer.read()
            state = self._states.load(pointer.state)
            before = self._states.load(pointer.previous) if pointer.previous else None
            left = self._states.leftovers(pointer.needed)
            records = [one.record for one in (state, before) if one]
            lines = self.history.read(pointer.history)
            names = {known for record in (*records, *left) for known in record.mentioned} | self._names_in_work()
            names |= {known for line in lines for known in line.names}
            if name not in names:
                if self._clean():
                    return Forgotten(state)
                raise InputError(f'there is no class "{name}": {nearest(name, names) if names else "none is known"}')
            self.drop_work()
            after = state
            if any(name in record.mentioned for record in records) or any(name in line.names for line in lines):
                id, after = pointer.state, state.without(name)
                if after.record != state.record:
                    id = self._states.write(after, number_of(pointer.state) + 1)
                rest = with_line(without(lines, name), Draft("forget", who=who), None, id)  # that names nothing
                pointer = Pointer(id, None, forgot=True, history=self.history.write(rest))
                self._pointer.write(pointer, state)
            self._clean()
            trained = not state.exact and any(record.kind_of(name) == "learned" for record in (*records, *left))
            gone = after.encoder_digests != state.encoder_digests
            return Forgotten(self._states.load(pointer.state), trained, gone)

    def _forget_first_call(self, name: str) -> "Forgotten":
        """Of a call to learn that was killed before there was a model, nothing is of use without the class."""
        named = name in self._names_in_work()
        if named:
            self.drop_work()
        if not self._clean() and not named:
            raise InputError(f'there is no class "{name}" in {self.path}, which holds no model yet')
        return Forgotten(None)

    def undo(self, *, number: int | None = None, wait: bool = False, who: str = COMMAND) -> ModelState:
        """Back to the state before the last change, or before the one of this number if it is the last."""
        with self._changing(wait):
            pointer = self._pointer.read()
            lines = self.history.read(pointer.history)
            last = undoable(lines)
            if number is not None and (last is None or last.number != number):
                raise Outdated("the model was changed since: look at its history again")
            if pointer.forgot:
                raise InputError(f"the last change of {self.path} was to forget a class, which cannot be undone")
            id = self._state_before(pointer, last)
            if last:
                draft = Draft("undo", last.classes, last.into, last.images, who)
                lines = with_line(marked_undone(lines, last.number), draft, pointer.state, id)
            left = undoable(lines)
            state = self._states.load(id)
            forgot = left is not None and left.what == "forget"
            self._pointer.write(Pointer(id, None, forgot, self.history.write(lines) if lines else None), state)
            self._clean()
            return self._states.load(id)

    def _state_before(self, pointer: Pointer, last: Change | None) -> str:
        """The id of the state before the last change, whose files are there."""
        if last and last.back:
            before = self.history.before(last, self._states.load(pointer.state), self.encoders)
            assert last.before is not None
            if self._states.write(before, number_of(last.before)) != last.before:
                raise InputError(f"the way back to the state {last.before} is damaged: it cannot be undone")
            return last.before
        if pointer.previous is None:
            raise InputError(f"{self.path} has no state before this one: only the last change can be undone, once")
        return pointer.previous

    def commit(self, state: ModelState, draft: Draft | None = None) -> ModelState:
        """Make this the present state, and the draft a line of the history. For the writer only."""
        after = self._write(state, draft)
        self._clean()
        return after

    def _write(self, state: ModelState, draft: Draft | None = None) -> ModelState:
        pointer = self._pointer.read() if self.exists else None
        before = self._states.load(pointer.state) if pointer else None
        self.encoders.write_waiting()
        id = self._states.write(state, number_of(pointer.state) + 1 if pointer else 1)
        after = self._states.load(id)
        lines = self.history.read(pointer.history) if pointer else ()
        if draft:
            lines = self.history.recorded(lines, draft, before, after, self.encoders)
        way = bool(lines and lines[-1].back)
        history = self.history.write(lines) if lines else None
        self._pointer.write(Pointer(id, pointer.state if pointer and not way else None, history=history), state)
        return after

    def bytes(self) -> int:
        return sum(entry.status.st_size for _, entry in self.folder.walk() if entry.is_file)

    def _clean(self) -> bool:
        """Remove images, states and parts of files that no state needs; states last, as they tell what is left.

        Whether anything was there to remove.
        """
        before = sum(1 for _ in self.folder.walk())
        self.folder.remove_leftovers()
        pointer = self._pointer.read() if self.exists else None
        states = {id: self._states.load(id) for id in pointer.needed} if pointer else {}
        lines = self.history.read(pointer.history) if pointer else ()
        backs = [line.back for line in lines if line.back]
        call = self.call()
        if "weights" not in call or (pointer and call["weights"] != weights_digest(states[pointer.state].weights)):
            self.drop_work()
        images = {digest for back in backs for digest in back.images}
        encoders = {digest for back in backs for digest in back.encoders}
        self.vault.keep_only(images.union(*(state.record.digests for state in states.values())))
        self.encoders.keep_only(encoders.union(*(state.encoder_digests for state in states.values())))
        self.history.keep_only(pointer.history if pointer else None, lines)
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
