"""What was done to a model, by whom and when, and the ways back.

    history/DIGEST.json           the lines, oldest first; `model.json` names the file
    history/DIGEST.safetensors    the way back of a change (see `way_back`); its line names the file

Files are named by the digest of their bytes and never changed, so a kill leaves the old history or the new one.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from episodica.classifier.encoder_files import EncoderFiles
from episodica.classifier.exact_state import ExactState
from episodica.classifier.state import ModelState
from episodica.classifier.way_back import go_back, way_back
from episodica.config.sections import Section
from episodica.errors import InputError
from episodica.files.digest import digest_of, is_digest
from episodica.files.door import Folder, Refused
from episodica.files.tensors import NoTensors, read_tensors

LINES = 1000  # that are kept
LEVELS = 50  # changes that can be undone
MOST_LINES, MOST_WAY = 2**25, 2**32  # bytes
COMMAND = "the command"  # who makes changes in a terminal or in Python
LOG, WAY = ".json", ".safetensors"

What = Literal[
    "learn", "remember", "replace", "add", "correct", "move", "remove", "rename", "merge", "forget", "undo", "import",
    "adapt",
]  # fmt: skip


class Draft(NamedTuple):
    """A change as whoever makes it describes it."""

    what: What = "learn"
    classes: tuple[str, ...] = ()
    into: str | None = None  # the class that images or classes went to
    images: int = 0
    who: str = COMMAND
    batch: str | None = None  # changes of one batch, one after another, are one line
    new: tuple[str, ...] = ()  # those of the classes that were not known before

    def after(self, state: ModelState | None) -> "Draft":
        """With the classes that this state did not know."""
        known = state.record.names if state else ()
        return self._replace(new=tuple(name for name in self.classes if name not in known))


class Back(Section):
    """What it takes to undo a change."""

    way: str = Field(pattern="^[0-9a-f]{32}$")
    images: tuple[str, ...] = ()
    """digests of images of the classes that were changed, as they were"""
    encoders: tuple[str, ...] = ()


class Change(Section):
    number: int
    what: What
    classes: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    """those of the classes that came with it"""
    into: str | None = None
    images: int = 0
    who: str
    when: str
    before: str | None = None
    """the state that was changed; none where there was no model"""
    after: str
    """the state that came of it"""
    batch: str | None = None
    undone: bool = False
    back: Back | None = None
    """none where it cannot be undone by itself"""

    @property
    def names(self) -> set[str]:
        return {*self.classes, *([self.into] if self.into else [])}


Changes = tuple[Change, ...]
_ADAPTER = TypeAdapter(Changes)


@dataclass(frozen=True)
class HistoryFiles:
    folder: Folder

    def read(self, digest: str | None) -> Changes:
        """The lines, oldest first; none where a model has no history yet."""
        if digest is None:
            return ()
        return _ADAPTER.validate_json(self._checked(digest, self._bytes(digest)))

    def _bytes(self, digest: str) -> bytes:
        try:
            return self.folder.read(f"{digest}{LOG}", MOST_LINES)
        except Refused:
            raise
        except OSError:
            return b""

    def _checked(self, digest: str, data: bytes) -> bytes:
        try:
            if digest_of(data) == digest and _ADAPTER.validate_json(data) is not None:
                return data
        except (ValidationError, ValueError):
            pass
        path = self.folder.path / digest
        raise InputError(f"the history {path} of the model is missing or damaged: restore the folder from a copy")

    def write(self, changes: Changes) -> str:
        kept = changes[-LINES:]
        data = json.dumps([change.model_dump(mode="json") for change in kept], ensure_ascii=False).encode()
        digest = digest_of(data)
        self.folder.write_bytes(f"{digest}{LOG}", data)
        return digest

    def write_way(self, data: bytes) -> str:
        digest = digest_of(data)
        self.folder.write_bytes(f"{digest}{WAY}", data)
        return digest

    def read_way(self, digest: str) -> bytes:
        try:
            data = read_tensors(self.folder, f"{digest}{WAY}", MOST_WAY)
        except (FileNotFoundError, NoTensors):
            data = b""
        if digest_of(data) != digest:
            path = self.folder.path / f"{digest}{WAY}"
            raise InputError(f"the way back {path} is missing or damaged: this change cannot be undone any more")
        return data

    def before(self, change: Change, after: ModelState, encoders: EncoderFiles) -> ExactState:
        """The state before a change that has a way back."""
        assert change.back is not None
        assert isinstance(after, ExactState)
        return go_back(after, self.read_way(change.back.way), encoders)

    def recorded(
        self, lines: Changes, draft: Draft, before: ModelState | None, after: ModelState, encoders: EncoderFiles
    ) -> Changes:
        """With a line about a change and, where both states have no training, a way back.

        A change of the same batch as the last one becomes part of its line.
        """
        if not isinstance(before, ExactState) or not isinstance(after, ExactState):
            return with_line(lines, draft.after(before), before.id if before else None, after.id)
        start, since, earlier = before, before.id, _same_batch(lines, draft)
        if earlier:
            start, since, lines = self.before(earlier, before, encoders), earlier.before, lines[:-1]
            classes = tuple(dict.fromkeys((*earlier.classes, *draft.classes)))
            draft = draft._replace(classes=classes, images=draft.images + earlier.images)
        differ = [stored for stored in start.classes if stored not in after.classes]
        back = Back(
            way=self.write_way(way_back(after, start)),
            images=tuple(sorted({digest for stored in differ for digest in stored.images})),
            encoders=tuple(start.encoder_digests - after.encoder_digests),
        )
        return with_line(lines, draft.after(start), since, after.id, back)

    def keep_only(self, digest: str | None, changes: Changes) -> None:
        """Remove other files; what has no name of ours stays."""
        wanted = {f"{digest}{LOG}", *(f"{change.back.way}{WAY}" for change in changes if change.back)}
        for entry in self.folder.entries():
            if is_history(entry.name) and entry.name not in wanted:
                self.folder.remove_tree(entry.name)


def is_history(name: str) -> bool:
    stem, dot, ending = name.partition(".")
    return is_digest(stem) and dot + ending in (LOG, WAY)


def undoable(changes: Changes) -> Change | None:
    """The latest change that was not undone: the next to be, if it has a way back."""
    return next((change for change in reversed(changes) if not change.undone and change.what != "undo"), None)


def with_line(lines: Changes, draft: Draft, before: str | None, after: str, back: Back | None = None) -> Changes:
    """With one more line; ways back beyond the last levels are given up."""
    number = lines[-1].number + 1 if lines else 1
    change = Change(**draft._asdict(), number=number, when=now(), before=before, after=after, back=back)
    together = [*lines, change]
    for i in [i for i, line in enumerate(together) if line.back][:-LEVELS]:
        together[i] = together[i].model_copy(update={"back": None})
    return tuple(together)


def marked_undone(changes: Changes, number: int) -> Changes:
    return tuple(
        change.model_copy(update={"undone": True, "back": None}) if change.number == number else change
        for change in changes
    )


def without(changes: Changes, name: str) -> Changes:
    """Without every line about a class, also under the names that it had before and of classes merged into it; and
    without any way back, as those may lead to its images."""
    names = {name}
    for change in reversed(changes):
        if change.what in ("rename", "merge") and change.into in names:
            names |= set(change.classes)
    return tuple(change.model_copy(update={"back": None}) for change in changes if not change.names & names)


def _same_batch(lines: Changes, draft: Draft) -> Change | None:
    """The line that a change belongs to, because it follows directly."""
    last = lines[-1] if lines else None
    if last is None or draft.batch is None or last.undone or last.back is None:
        return None
    return last if (last.batch, last.what, last.who) == (draft.batch, draft.what, draft.who) else None


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
