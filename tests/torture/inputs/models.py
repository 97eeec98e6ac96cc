"""Models from strangers who know how they are written: any record, points and pointer, with digests that fit."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from episodica.classifier.exact_state import POINTS
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.pointer import POINTER
from episodica.classifier.state_files import CHECKSUMS, RECORD
from episodica.files.digest import digest_of
from episodica.models import conv4
from torture.inputs.damage import altered, damaged
from torture.inputs.kind import Kind, reading
from torture.inputs.tensors import files as tensor_files

TRAINED = Path(__file__).parents[2] / "fixtures" / "0.1.0" / "model"
CHANNELS = (4, 4, 4, 4)  # of the network there


def _present(model: Path) -> Path:
    return model / "states" / json.loads((model / POINTER).read_text())["state"]


def _named(name: str, content: SearchStrategy[bytes]) -> SearchStrategy[bytes]:
    """The input says which file it takes the place of."""
    return content.map(lambda data: name.encode() + b"\n" + data)


def hostile(model: Path) -> SearchStrategy[bytes]:
    state = _present(model)
    ways = [_named(name, _json(json.loads((model / name).read_text()))) for name in [POINTER]]
    ways += [_named(RECORD, _json(json.loads((state / RECORD).read_text())))] * 3
    for path in state.glob("*.safetensors"):
        ways += [_named(path.name, damaged(st.just(path.read_bytes()))), _named(path.name, tensor_files())]
    return st.one_of(ways)


def _json(tree: Any) -> SearchStrategy[bytes]:
    return altered(tree).map(lambda other: json.dumps(other).encode())


def read(data: bytes, place: Path, model: Path) -> None:
    """Every digest is that of what is there."""
    conv4.CHANNELS["classic"] = CHANNELS
    copy = place / "model"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(model, copy)
    name, _, content = data.partition(b"\n")
    if name == POINTER.encode():
        (copy / POINTER).write_bytes(content)
    else:
        _sign(_present(copy), name.decode(), content)
    folder = ModelFolder(copy)
    state = folder.state()
    recogniser = state.recogniser()
    size = recogniser.image_size
    recogniser.answers(recogniser.embed(np.full((1, size, size, 3), 128, np.uint8)))
    folder.changes()
    for stored in state.classes:
        assert state.images_of(stored) >= 0


def _sign(state: Path, name: str, content: bytes) -> None:
    (state / name).write_bytes(content)
    checksums = json.loads((state / CHECKSUMS).read_text()) | {name: digest_of(content)}
    text = json.dumps(checksums)
    (state / CHECKSUMS).write_text(text)
    signed = state.with_name(f"{state.name.partition('-')[0]}-{digest_of(text.encode())}")
    state.rename(signed)
    pointer = state.parent.parent / POINTER
    pointer.write_text(pointer.read_text().replace(state.name, signed.name))


def kinds(model: Path) -> list[Kind]:
    assert (_present(model) / POINTS).is_file()
    sources = {"frozen encoder": model, "trained": TRAINED}
    return [
        Kind(f"models, {name}", hostile(source), reading(partial(read, model=source)))
        for name, source in sources.items()
    ]
