"""Checkpoints: everything that the rest of a run depends on, written so that a kill at any moment costs only time.

A checkpoint is a pair `SSS-NNNNNNNN.{safetensors,json}` (session, steps done); `SSS-end` follows a session's
evaluation and is kept: it is the old model of the next session. A run that starts from given
weights writes such an end first: that of the session before, or `000-end`. The JSON comes last and names the
tensors' checksum, so a pair counts only when it is whole. Random state is not in it: draws depend on (seed, session,
step) alone.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from episodica.errors import InputError
from episodica.files.atomic import remove_leftovers, write_atomically, write_json


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
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, checkpoint: Checkpoint, tensors: Mapping[str, Tensor]) -> None:
        remove_leftovers(self.folder)
        blob = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        write_atomically(self._path(checkpoint.name, "safetensors"), lambda part: part.write(blob))
        record = asdict(checkpoint)
        write_json(self._path(checkpoint.name, "json"), {**record, "checksum": _checksum(blob, record)})
        for old in self.folder.glob("*-[0-9]*.*"):
            if old.stem != checkpoint.name:
                old.unlink(missing_ok=True)

    def latest(self) -> Checkpoint | None:
        names = sorted(path.stem for path in self.folder.glob("*.json"))
        return self._read(names[-1])[0] if names else None

    def tensors(self, checkpoint: Checkpoint) -> dict[str, Tensor]:
        return self._tensors(checkpoint.name)

    def at_end_of(self, session: int) -> dict[str, Tensor]:
        return self._tensors(_end(session))

    def sessions(self) -> list[int]:
        """The sessions that have ended, counted from 1."""
        return sorted(int(path.stem.split("-")[0]) for path in self.folder.glob("*-end.json"))

    def _tensors(self, name: str) -> dict[str, Tensor]:
        return load(self._read(name)[1])

    def _read(self, name: str) -> tuple[Checkpoint, bytes]:
        """The whole pair, or the error that says what to do about it."""
        try:
            record = json.loads(self._path(name, "json").read_text())
            blob = self._path(name, "safetensors").read_bytes()
            if record.pop("checksum") != _checksum(blob, record):
                raise ValueError
            return Checkpoint(**record), blob
        except (FileNotFoundError, ValueError, KeyError, AttributeError, TypeError):
            rest = sorted(path.name for path in self.folder.glob("*.*") if path.stem >= name)
            raise InputError(
                f"the checkpoint {self.folder / name}.* is damaged or incomplete; nothing was changed. Restore it, or "
                f"delete {', '.join(rest) or 'it'} to continue from the checkpoint before it"
            ) from None

    def _path(self, name: str, ending: str) -> Path:
        return self.folder / f"{name}.{ending}"


def _end(session: int) -> str:
    return f"{session + 1:03d}-end"


def _checksum(blob: bytes, record: Mapping[str, Any]) -> str:
    return blake2b(blob + json.dumps(record, sort_keys=True).encode(), digest_size=16).hexdigest()


def module_tensors(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in module.state_dict().items()}


def restore_module(prefix: str, module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load a module whose tensors may have grown since it was built: saved shapes are adopted first."""
    saved = _under(prefix, tensors)
    for name, tensor in module.state_dict(keep_vars=True).items():
        if name in saved and tensor.shape != saved[name].shape:
            tensor.data = torch.empty_like(saved[name], device=tensor.device)
    module.load_state_dict(saved)


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{i}.{key}": value for i, slots in state.items() for key, value in slots.items()}


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Each slot takes the memory format of its parameter, which fused kernels rely on."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _under("optimizer", tensors).items():
        index, key = name.split(".")
        like = parameters[int(index)]
        slot = torch.empty_like(like).copy_(tensor) if tensor.shape == like.shape else tensor
        state.setdefault(int(index), {})[key] = slot
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}."): t for name, t in tensors.items() if name.startswith(f"{prefix}.")}
