"""Checkpoints: everything that the rest of a run depends on, written so that a kill at any moment costs only time.

A checkpoint is a pair `SSS-NNNNNNNN.{safetensors,json}` (session, steps done); `SSS-end` follows a session's
evaluation and is kept: it is the old model of the next session. A run that starts from given
weights writes such an end first: that of the session before, or `000-end`. The JSON comes last and names the
tensors' checksum, so a pair counts only when it is whole. Random state is not in it: draws depend on (seed, session,
step) alone.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.files.digest import digest_of
from episodica.files.door import Folder, Refused
from episodica.files.parsing import parse_json
from episodica.files.tensors import read_tensors
from episodica.learners.learner import Learner

MOST_RECORD, MOST_TENSORS = 2**28, 2**33  # bytes that are read
_NAME = re.compile(r"\d{3,}-(\d{8,}|end)\.(json|safetensors)", re.ASCII)


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stands, as plain data; its tensors lie beside it."""

    session: int  # counted from 0
    step: int  # steps done in it
    ended: bool  # memory chosen, evaluation done
    events: int  # bytes of events.jsonl that belong to it
    seconds_train: float  # spent in this session
    memory: dict[str, Any] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)

    @property
    def name(self) -> str:
        return _end(self.session) if self.ended else f"{self.session + 1:03d}-{self.step:08d}"


class Checkpoints:
    def __init__(self, folder: Folder, most: int = MOST_TENSORS) -> None:
        self.folder, self._most = folder, most  # bytes of tensors that are read

    @classmethod
    def of(cls, folder: Folder, config: RunConfig) -> Self:
        """Weights, two averages of each in the optimiser, and what the method keeps."""
        return cls(folder, 4 * config.backbone.component.most_bytes)  # type: ignore[attr-defined]

    def save(self, checkpoint: Checkpoint, tensors: Mapping[str, Tensor]) -> None:
        self.folder.remove_leftovers()
        blob = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        self.folder.write_bytes(f"{checkpoint.name}.safetensors", blob)
        record = asdict(checkpoint)
        self.folder.write_json(f"{checkpoint.name}.json", {**record, "checksum": _checksum(blob, record)})
        self.remove_others(checkpoint)

    def remove_others(self, checkpoint: Checkpoint) -> None:
        """All but this one and the ends of sessions. After a power cut they may be there again, so that who goes on
        from a checkpoint asks for it too; what a finished run has removed stays so.
        """
        others = [file for file in self._files() if _stem(file) != checkpoint.name and not _stem(file).endswith("-end")]
        for file in others:
            self.folder.remove(file)
        if others:
            self.folder.sync()

    def latest(self) -> Checkpoint | None:
        names = sorted(map(_stem, self._files(".json")))
        return self._read(names[-1])[0] if names else None

    def tensors(self, checkpoint: Checkpoint) -> dict[str, Tensor]:
        return self._tensors(checkpoint.name)

    def at_end_of(self, session: int) -> dict[str, Tensor]:
        return self._tensors(_end(session))

    def sessions(self) -> list[int]:
        """The sessions that have ended, counted from 1."""
        return sorted(int(name.split("-")[0]) for name in self._files("-end.json"))

    def _tensors(self, name: str) -> dict[str, Tensor]:
        blob = self._read(name)[1]
        try:
            return load(blob)
        except (SafetensorError, KeyError) as error:  # a kind of number that torch does not have is a KeyError
            raise InputError(
                f"{self.folder.path / name}.safetensors holds no tensors ({error}): it was not written by episodica"
            ) from None

    def _read(self, name: str) -> tuple[Checkpoint, bytes]:
        """The whole pair, or the error that says what to do about it."""
        try:
            record = parse_json(self.folder.read(f"{name}.json", MOST_RECORD), MOST_RECORD)
            blob = read_tensors(self.folder, f"{name}.safetensors", self._most)
            if record.pop("checksum") != _checksum(blob, record):
                raise ValueError
            checkpoint = Checkpoint(**record)
            if checkpoint.name != name:
                raise ValueError
            return checkpoint, blob
        except Refused:
            raise
        except (FileNotFoundError, ValueError, KeyError, AttributeError, TypeError):
            rest = [file for file in self._files() if _stem(file) >= name]
            raise InputError(
                f"the checkpoint {self.folder.path / name}.* is damaged or incomplete; nothing was changed. Restore "
                f"it, or delete {', '.join(rest) or 'it'} to continue from the checkpoint before it"
            ) from None

    def _files(self, ending: str = "") -> list[str]:
        """What has the name of a checkpoint's file; links too, so that they are refused and not passed over."""
        names = [entry.name for entry in self.folder.entries()]
        return [name for name in names if _NAME.fullmatch(name) and name.endswith(ending)]


def _stem(file: str) -> str:
    return file.rpartition(".")[0]


def _end(session: int) -> str:
    return f"{session + 1:03d}-end"


def _checksum(blob: bytes, record: Mapping[str, Any]) -> str:
    return digest_of(blob, json.dumps(record, sort_keys=True).encode())


def module_tensors(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in module.state_dict().items()}


def restore_module(prefix: str, module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load a module whose tensors may have grown since it was built: saved shapes are adopted first."""
    saved = _under(prefix, tensors)
    for name, tensor in module.state_dict(keep_vars=True).items():
        if name in saved and tensor.shape != saved[name].shape:
            if tensor.numel() and tensor.shape[1:] != saved[name].shape[1:]:
                raise _misfit(prefix, f"{name} is {list(saved[name].shape)} and must be {list(tensor.shape)}")
            tensor.data = torch.empty_like(saved[name], device=tensor.device)
    try:
        module.load_state_dict(saved)
    except RuntimeError as error:
        raise _misfit(prefix, " ".join(str(error).split())[:300]) from None


def require_fit(learner: Learner, size: int) -> None:
    """Refuse weights from a file that cannot embed an image: shapes that fit one by one may not fit each other."""
    try:
        with torch.no_grad():
            learner.embed(torch.zeros(1, 3, size, size))
    except RuntimeError as error:
        raise _misfit("learner", str(error).partition("\n")[0]) from None


def _misfit(what: str, why: str) -> InputError:
    return InputError(
        f"the saved tensors of the {what} do not fit together with its config ({why}): they are damaged or from "
        "elsewhere; restore the folder from a copy"
    )


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{i}.{key}": value for i, slots in state.items() for key, value in slots.items()}


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Each slot takes the memory format of its parameter, which fused kernels rely on."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    places = {str(place): parameter for place, parameter in enumerate(parameters)}
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _under("optimizer", tensors).items():
        index, _, key = name.partition(".")
        if index not in places:
            raise _misfit("optimizer", f"there is no parameter for {name}")
        like = places[index]
        if tensor.ndim and tensor.shape != like.shape:
            raise _misfit("optimizer", f"{name} is {list(tensor.shape)} and must be {list(like.shape)}")
        slot = torch.empty_like(like).copy_(tensor) if tensor.shape == like.shape else tensor
        state.setdefault(int(index), {})[key] = slot
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}."): t for name, t in tensors.items() if name.startswith(f"{prefix}.")}
