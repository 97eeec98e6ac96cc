"""What a stranger can leave in a folder instead of a file, and files of yours that must not suffer from it."""

import os
import socket
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

PRECIOUS = b"precious\n"
NAMES = ("config.yaml", "events.jsonl", "weights.safetensors", "001-00000001.json", "digest.png", ".x.1.part")


class Victim:
    """A folder of somebody's files, with names that our own code looks for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / NAMES[0]
        for place in (folder, folder / "inner"):
            place.mkdir(parents=True)
            for name in NAMES:
                (place / name).write_bytes(PRECIOUS)

    def check(self) -> None:
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if not path.is_dir()}
        assert found == {*NAMES, *(f"inner/{name}" for name in NAMES)}, "files of a victim were added or removed"
        changed = [name for name in found if (self.folder / name).read_bytes() != PRECIOUS]
        assert not changed, f"files of a victim were changed: {changed}"


def _socket(path: Path, victim: Victim) -> None:
    with socket.socket(socket.AF_UNIX) as listener, chdir(path.parent):  # the name of a socket must be short
        listener.bind(path.name)


PLANTED: dict[str, Callable[[Path, Victim], object]] = {
    "link to a file": lambda path, victim: path.symlink_to(victim.file),
    "link to a folder": lambda path, victim: path.symlink_to(victim.folder),
    "link to nothing": lambda path, victim: path.symlink_to(victim.folder / "new"),
    "link to a device": lambda path, victim: path.symlink_to("/dev/zero"),
    "pipe": lambda path, victim: os.mkfifo(path),
    "socket": _socket,
    "folder": lambda path, victim: path.mkdir(),
}
LINKS = [kind for kind in PLANTED if kind.startswith("link")]
NO_FILES = list(PLANTED)
NO_FOLDERS = [kind for kind in PLANTED if kind != "folder"]


def plant(kind: str, path: Path, victim: Victim) -> None:
    """In place of what is there."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name} before"))
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    PLANTED[kind](path, victim)
