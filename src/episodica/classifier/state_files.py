"""The files of states: a folder each, whose name ends with the digest of its checksums."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from safetensors import SafetensorError

from episodica.classifier.encoder_files import EncoderFiles
from episodica.classifier.exact_state import ExactRecord, ExactState
from episodica.classifier.state import EXACT_FORMAT, ModelState, StateRecord
from episodica.classifier.trained_state import TrainedState
from episodica.errors import InputError
from episodica.files.digest import digest_of, is_digest
from episodica.files.door import Folder, Refused
from episodica.files.parsing import parse_json
from episodica.files.tensors import NoTensors, read_tensors
from episodica.learners.statistics import Statistics

RECORD, CHECKSUMS, TENSORS = "state.json", "checksums.json", ".safetensors"
MOST = {RECORD: 2**26, CHECKSUMS: 2**12}  # bytes
OF_A_STATE = {*MOST, *TrainedState.FILES, *ExactState.FILES}


class _Damaged(Exception):
    """A file by its name."""


class StateFiles:
    def __init__(self, folder: Folder, encoders: EncoderFiles) -> None:
        self.folder, self.encoders = folder, encoders
        self._written: tuple[str, Statistics] | None = None  # the sums of the last state, by its id: it takes no time

    def write(self, state: ModelState, number: int) -> str:
        """The id under which the state can be loaded from now on."""
        files = {RECORD: state.record.model_dump_json(indent=1).encode(), **state.files()}
        files[CHECKSUMS] = json.dumps({name: digest_of(data) for name, data in files.items()}).encode()
        id = f"{number:06d}-{digest_of(files[CHECKSUMS])}"
        for name, data in files.items():
            (self.folder / id).write_bytes(name, data)
        if isinstance(state, ExactState):
            self._written = id, state.statistics
        return id

    def load(self, id: str) -> ModelState:
        try:
            checksums = self._checksums(id)
            record = _record(self._checked(id, RECORD, MOST[RECORD], checksums))
            kind = ExactState if isinstance(record, ExactRecord) else TrainedState
            files = {name: self._checked(id, name, most, checksums) for name, most in kind.most(record).items()}
            if isinstance(record, ExactRecord):
                summed = self._written[1] if self._written and self._written[0] == id else None
                return ExactState.from_files(id, record, files, self.encoders, summed)
            return TrainedState.from_files(id, record, files)
        except Refused:
            raise
        except FileNotFoundError as error:
            problem = f"{Path(error.filename).name} is missing"
        except _Damaged as error:
            problem = f"{error} is damaged"
        except (OSError, ValueError, KeyError, TypeError, SafetensorError, ValidationError):
            problem = "a file is damaged"
        raise InputError(f"the state {self.folder.path / id} cannot be read, {problem}: restore the folder from a copy")

    def _checksums(self, id: str) -> dict[str, str]:
        """Of every other file; the id vouches for them."""
        data = (self.folder / id).read(CHECKSUMS, MOST[CHECKSUMS])
        if id != f"{number_of(id):06d}-{digest_of(data)}":
            raise _Damaged(CHECKSUMS)
        return parse_json(data)

    def _checked(self, id: str, name: str, most: int, checksums: Mapping[str, str]) -> bytes:
        folder = self.folder / id
        try:
            data = read_tensors(folder, name, most) if name.endswith(TENSORS) else folder.read(name, most)
        except NoTensors:
            raise _Damaged(name) from None
        if digest_of(data) != checksums[name]:
            raise _Damaged(name)
        return data

    def leftovers(self, needed: Collection[str]) -> list[StateRecord]:
        """Records of other states, which a killed process did not finish or did not remove."""
        found = []
        for id in self._others(needed):
            try:
                found.append(_record((self.folder / id).read(RECORD, MOST[RECORD])))
            except (OSError, ValueError):
                continue  # it names nothing that could be told
        return found

    def keep_only(self, needed: Collection[str]) -> None:
        """Remove other states. Their records go last: what is removed half can still be told."""
        for id in self._others(needed):
            if id in self.folder.folders():
                for entry in (self.folder / id).entries():
                    if entry.name != RECORD:
                        (self.folder / id).remove_tree(entry.name)
            self.folder.remove_tree(id)

    def _others(self, needed: Collection[str]) -> list[str]:
        """What has the name of a state, and is none that is needed. Anything else is not ours."""
        return [entry.name for entry in self.folder.entries() if is_id(entry.name) and entry.name not in needed]


def _record(data: bytes) -> StateRecord:
    found = parse_json(data)
    kind = ExactRecord if isinstance(found, dict) and found.get("format") == EXACT_FORMAT else StateRecord
    return kind.model_validate_json(data)


def number_of(id: Any) -> int:
    """Which change made the state of this name."""
    number, _, digest = id.partition("-")
    if not is_digest(digest):
        raise ValueError(f"no state is called {id}")
    return int(number)


def is_id(name: str) -> bool:
    try:
        return number_of(name) >= 0
    except ValueError:
        return False
