"""Files of tensors (safetensors) from strangers: what a file says of itself is checked before its bytes are read.

A file without content can claim to be of any size and takes no space on a disk, but in memory it would. So the header
must account for every byte, and the file must not be larger than the tensors can be that the caller expects.
"""

import os
from typing import Any

from episodica.files.door import Folder
from episodica.files.parsing import ParseError, parse_json

MOST_HEADER = 2**22  # bytes; ours have some ten thousand
LENGTH = 8  # bytes that say how long the header is


class NoTensors(ValueError):
    """What a file says of itself is not true."""


def read_tensors(folder: Folder, name: str, most: int) -> bytes:
    """All of a file; where it holds no tensors or more than it may, it is refused without being read."""
    with folder.open(name) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(LENGTH), "little")
        header = file.read(length) if LENGTH < LENGTH + length <= min(size, MOST_HEADER) else b""
    if size <= most and _end(header) != size - LENGTH - len(header):
        raise NoTensors(f"{folder.path / name} holds no tensors")
    return folder.read(name, most)


def _end(header: bytes) -> int | None:
    """Where the last tensor ends, as the header says it."""
    try:
        found: Any = parse_json(header, MOST_HEADER)
        return max((int(value["data_offsets"][1]) for key, value in found.items() if key != "__metadata__"), default=0)
    except (ParseError, ValueError, TypeError, LookupError, AttributeError):
        return None
