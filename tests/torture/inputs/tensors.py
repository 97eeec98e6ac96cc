"""Files of tensors: headers that say anything, with checksums that fit, as a checkpoint and as a state of a model."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from episodica.engine.checkpoint import Checkpoint, Checkpoints, _checksum
from episodica.files.door import Folder
from torture.inputs.damage import altered, damaged, numbers
from torture.inputs.kind import Kind, reading

DTYPES = ["F32", "F64", "F16", "BF16", "I8", "U8", "I16", "I64", "U64", "BOOL", "F8_E4M3", "F4", "C64", "X", ""]
SIZES = {"F64": 8, "I64": 8, "U64": 8, "C64": 8, "F32": 4, "F16": 2, "BF16": 2, "I16": 2}


@st.composite
def headers(draw: DrawFn) -> tuple[dict[str, Any], int]:
    """Of tensors one after another, and the bytes that they take."""
    header: dict[str, Any] = {"__metadata__": {"by": "us"}} if draw(st.booleans()) else {}
    at = 0
    for name in draw(st.lists(st.sampled_from(["learner.a", "b", "rows", "text", ""]), unique=True, max_size=3)):
        kind, shape = draw(st.sampled_from(DTYPES)), draw(st.lists(st.integers(0, 6), max_size=3))
        size = SIZES.get(kind, 1)
        for extent in shape:
            size *= extent
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return header, at


@st.composite
def files(draw: DrawFn) -> bytes:
    header, size = draw(headers())
    tree = draw(altered(header)) if draw(st.booleans()) else header
    text = json.dumps(tree).encode()
    length = draw(st.just(len(text)) | st.just(len(text)) | numbers)
    return length.to_bytes(8, "little") + text + bytes(draw(st.just(size) | st.integers(0, 300)))


def hostile() -> SearchStrategy[bytes]:
    return st.one_of(files(), damaged(files(), 3))


def read(data: bytes, place: Path) -> None:
    """A checkpoint of which the record vouches for the tensors."""
    record = {"session": 0, "step": 0, "ended": True, "events": 0, "seconds_train": 0.0, "memory": {}, "results": []}
    name = Checkpoint(**record).name
    (place / f"{name}.safetensors").write_bytes(data)
    (place / f"{name}.json").write_text(json.dumps({**record, "checksum": _checksum(data, record)}))
    Checkpoints(Folder(place)).at_end_of(0)


KINDS = [Kind("safetensors", hostile(), reading(read))]
