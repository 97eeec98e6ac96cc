"""Files that are the old or the new state, whatever happens while they are written; in folders that users name."""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from episodica.files.door import Folder


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    Folder(path.parent).write(path.name, write)


def write_text(path: Path, text: str) -> None:
    Folder(path.parent).write_text(path.name, text)


def write_json(path: Path, value: Any) -> None:
    Folder(path.parent).write_json(path.name, value)


def remove_leftovers(folder: Path) -> None:
    Folder(folder).remove_leftovers()
