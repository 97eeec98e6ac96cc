"""Files that are either the old or the new state, whatever happens while they are written."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write beside the target, flush to the disk, then take its place; and flush the folder that says so."""
    _make(path.parent)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _flush(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _make(folder: Path) -> None:
    """With the folders above it, each of them on the disk."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush(folder.parent)


def _flush(folder: Path) -> None:
    """Without this, a file that was renamed may be back under its old name after a power cut."""
    if os.name == "nt":  # there, folders cannot be opened
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda part: part.write(text.encode()))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2) + "\n")


def remove_leftovers(folder: Path) -> None:
    """Parts that a killed process left behind."""
    for part in folder.rglob(".*.part"):
        part.unlink(missing_ok=True)
