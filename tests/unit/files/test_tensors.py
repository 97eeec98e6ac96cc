"""Files that claim to hold tensors: what is not true is found before it takes memory."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from episodica.files.door import Folder, Refused
from episodica.files.tensors import NoTensors, read_tensors

GIGABYTE = 2**30
LIES = {
    "nothing": b"",
    "no header": (10**6).to_bytes(8, "little"),
    "a header without end": (2**63).to_bytes(8, "little") + b"{}",
    "no JSON": (4).to_bytes(8, "little") + b"####",
    "a list": (2).to_bytes(8, "little") + b"[]",
    "no places": (9).to_bytes(8, "little") + b'{"a": {}}',
}


def sparse(path: Path, content: bytes, size: int) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.truncate(size)


def test_tensors_are_read_as_they_are(tmp_path: Path) -> None:
    blob = save({"a": torch.arange(6.0), "b": torch.ones(2, 3)}, {"by": "us"})
    (tmp_path / "x").write_bytes(blob)
    assert read_tensors(Folder(tmp_path), "x", 10**4) == blob
    (tmp_path / "x").write_bytes(save({}))
    assert read_tensors(Folder(tmp_path), "x", 10**4) == save({})


@pytest.mark.parametrize("case", LIES)
@pytest.mark.parametrize("size", [0, 100 * GIGABYTE])
def test_a_lie_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, size: int) -> None:
    """A file of a hundred gigabytes that takes no space on the disk."""
    sparse(tmp_path / "x", LIES[case], size or len(LIES[case]))
    monkeypatch.setattr(Folder, "read", None)
    with pytest.raises(NoTensors):
        read_tensors(Folder(tmp_path), "x", 2 * 100 * GIGABYTE)


def test_more_than_is_expected(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "U8", "shape": [GIGABYTE], "data_offsets": [0, GIGABYTE]}}).encode()
    sparse(tmp_path / "x", len(header).to_bytes(8, "little") + header, 8 + len(header) + GIGABYTE)
    with pytest.raises(Refused, match="may have 1,000"):
        read_tensors(Folder(tmp_path), "x", 1_000)
