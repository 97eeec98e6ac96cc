"""The files of states: a folder each, whose name ends with the digest of its checksums."""

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from episodica.classifier.state import ModelState, StateRecord
from episodica.classifier.vault import digest_of
from episodica.errors import InputError
from episodica.files.atomic import write_atomically

RECORD, WEIGHTS, PROTOTYPES, CHECKSUMS = "state.json", "weights.safetensors", "prototypes.safetensors", "checksums.json"


class StateFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, state: ModelState, number: int) -> str:
        """The id under which the state can be loaded from now on."""
        files = {
            RECORD: state.record.model_dump_json(indent=1).encode(),
            WEIGHTS: _encoded(state.weights),
            PROTOTYPES: save({"prototypes": state.prototypes.contiguous()}),
        }
        files[CHECKSUMS] = json.dumps({name: digest_of(data) for name, data in files.items()}).encode()
        id = f"{number:06d}-{digest_of(files[CHECKSUMS])}"
        for name, data in files.items():
            write_atomically(self.folder / id / name, lambda part, data=data: part.write(data))
        return id

    def load(self, id: str) -> ModelState:
        folder = self.folder / id
        try:
            checksums = (folder / CHECKSUMS).read_bytes()
            expected: dict[str, str] = json.loads(checksums)
            files = {name: (folder / name).read_bytes() for name in expected}
            wrong = [name for name, data in files.items() if digest_of(data) != expected[name]]
            if wrong or id != f"{number_of(id):06d}-{digest_of(checksums)}":
                raise ValueError(", ".join(wrong) or CHECKSUMS)
            record = StateRecord.model_validate_json(files[RECORD])
            prototypes: Tensor = load(files[PROTOTYPES])["prototypes"]
            return ModelState(id, record, load(files[WEIGHTS]), prototypes)
        except FileNotFoundError as error:
            problem = f"{Path(error.filename).name} is missing"
        except (OSError, ValueError, KeyError, TypeError, SafetensorError, ValidationError) as error:
            named = str(error) in {RECORD, WEIGHTS, PROTOTYPES, CHECKSUMS}
            problem = f"{error if named else 'a file'} is damaged"
        raise InputError(f"the state {folder} cannot be read, {problem}: restore the folder from a copy")

    def leftovers(self, needed: Collection[str]) -> list[StateRecord]:
        """Records of other states, which a killed process did not finish or did not remove."""
        found = []
        for path in self.folder.glob(f"*/{RECORD}"):
            if path.parent.name not in needed:
                try:
                    found.append(StateRecord.model_validate_json(path.read_bytes()))
                except (OSError, ValidationError):
                    continue  # it names nothing that could be told
        return found

    def keep_only(self, needed: Collection[str]) -> None:
        """Remove other states. Their records go last: what is removed half can still be told. Files are not ours."""
        for folder in self.folder.iterdir():
            if folder.is_dir() and folder.name not in needed:
                for path in folder.iterdir():
                    if path.name != RECORD:
                        path.unlink()
                shutil.rmtree(folder)


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    return digest_of(_encoded(weights))


def _encoded(weights: Mapping[str, Tensor]) -> bytes:
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()})


def number_of(id: Any) -> int:
    """Which change made the state of this name."""
    number, _, digest = id.partition("-")
    if len(digest) != 32 or not set(digest) <= set("0123456789abcdef"):
        raise ValueError(f"no state is called {id}")
    return int(number)
