"""Runs that take half a second, and all that such a run leaves behind."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.registry import components, find, settings_of
from episodica.sweep.grid import plan
from episodica.sweep.recipe import Recipe

SESSIONS, EPOCHS, EPISODES = 3, 2, 2
STEPS = EPOCHS * EPISODES
QUERIES = 3
EPISODE = 5 * (1 + QUERIES)  # images

TINY: dict[str, Any] = {
    "data.name": "glyphs",
    "data.classes": 12,
    "data.per_class": 30,
    "data.size": 16,
    "stream.tasks": SESSIONS,
    "stream.unseen_classes": 4,
    "stream.test_per_class": 8,
    "backbone.name": "conv4",
    "learner.name": "protonet",
    "method.name": "erd",
    "shape.queries": QUERIES,
    "memory.per_class": 5,
    "train.epochs": EPOCHS,
    "train.episodes": EPISODES,
    "train.log_every": 1,
    "eval.episodes": 20,
    "threads": 1,
    "device": "cpu",
    "kernels": "torch",
}

LARGER_MAPS = {"backbone.pools": 2}  # for a learner to which the backbone's usual maps of 16 px are too small


def tiny(overrides: Mapping[str, Any] | None = None, **names: str) -> RunConfig:
    """The tiny config with changes; `tiny(method="ft")` picks components by name."""
    chosen: dict[str, Any] = {f"{section}.name": name for section, name in names.items()}
    if "batch" in settings_of(find("method", names.get("method", "erd"))).model_fields:
        chosen["method.batch"] = EPISODE  # so that a session has as many steps whatever the method
    flat = {**TINY, **chosen, **(overrides or {})}
    try:
        (config,) = plan(Recipe("tiny"), flat)
    except InputError:
        if "pools" not in settings_of(find("backbone", flat["backbone.name"])).model_fields:
            raise
        (config,) = plan(Recipe("tiny"), {**LARGER_MAPS, **flat})
    return config


def refusal(method: str, learner: str) -> str | None:
    """Why a method does not work with a learner, or nothing."""
    try:
        tiny(method=method, learner=learner)
    except InputError as error:
        return str(error)
    return None


COMPLETE_BACKBONES = [  # a name is all that they need
    name
    for name, backbone in components("backbone").items()
    if not any(field.is_required() for field in settings_of(backbone).model_fields.values())
]
PAIRS = list(product(components("method"), components("learner")))
RUNNABLE = [pair for pair in PAIRS if refusal(*pair) is None]

every_pair = pytest.mark.parametrize(("method", "learner"), RUNNABLE)


def outcome(folder: Path) -> dict[str, Any]:
    """What a run folder holds, times aside: equal for two runs that computed the same bits."""
    return {
        "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()),
        "results": untimed(json.loads((folder / "results.json").read_text())),
        "events": [untimed(json.loads(line)) for line in (folder / "events.jsonl").read_text().splitlines()],
        "exemplars": json.loads((folder / "exemplars.json").read_text()),
        "split": json.loads((folder / "split.json").read_text()),
        "weights": weights(folder),
        "episodes": {path.name: _accuracies(path) for path in folder.glob("episodes/*.npz")},
    }


def weights(folder: Path) -> dict[str, str]:
    """A digest of each session's final tensors."""
    return {path.name: digest(path.read_bytes()) for path in sorted(folder.glob("checkpoints/*.safetensors"))}


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    return digest(b"".join(name.encode() + tensors[name].contiguous().numpy().tobytes() for name in sorted(tensors)))


def digest(blob: bytes) -> str:
    return blake2b(blob, digest_size=8).hexdigest()


def untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: untimed(part) for key, part in value.items() if not key.startswith("seconds")}
    return [untimed(part) for part in value] if isinstance(value, list) else value


def losses(folder: Path, session: int) -> list[dict[str, float]]:
    """The logged terms of each step of a session, counted from 1."""
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [event["loss"] for event in events if event["event"] == "step" and event["session"] == session]


def _accuracies(path: Path) -> dict[str, str]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: digest(arrays[name].tobytes()) for name in arrays.files}
