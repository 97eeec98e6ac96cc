"""A run folder on its way between two disks, in pieces that need little memory; what arrives is whole or not there."""

from collections.abc import Collection, Iterator
from hashlib import blake2b
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

from episodica.files.door import Folder

PIECE = 2**24  # bytes
LEFT_BEHIND = (".lock", ".part")  # a lock and half-written files belong to the process that made them


class Piece(NamedTuple):
    name: str  # of the file, below the folder
    content: bytes
    last: bool


class Sender:
    """Sends what is new or has changed since it was sent or received."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[int, int]] = {}

    def files(self) -> dict[str, tuple[int, int]]:
        """Each file with its version. The JSON of a checkpoint says that its tensors are there, so it is sent later."""
        found = {
            place.path / entry.name: entry.status
            for place, entry in Folder(self._folder).walk()
            if entry.is_file and not entry.name.endswith(LEFT_BEHIND)
        }
        states = {path: found[path] for path in sorted(found, key=lambda path: (path.suffix == ".json", path))}
        return {str(p.relative_to(self._folder)): (state.st_mtime_ns, state.st_size) for p, state in states.items()}

    def changed(self) -> Iterator[Piece]:
        for name, version in self.files().items():
            if self._known.get(name) != version:
                yield from _pieces(name, self._folder)
                self._known[name] = version

    def is_up_to_date(self) -> None:
        """The other side has all that is here."""
        self._known = self.files()


def _pieces(name: str, path: Path) -> Iterator[Piece]:
    place, last_name = _place(path, name)
    with place.open(last_name) as file:
        content, last = file.read(PIECE), False
        while not last:
            following = file.read(PIECE)
            last = not following
            yield Piece(name, content, last)
            content = following


def receive(piece: Piece, folder: Path) -> None:
    """Pieces of a file come one after another; it takes its place with the last."""
    place, name = _place(folder, piece.name)
    part = f".{name}.arriving.part"
    with place.open_to_continue(part) as file:
        file.write(piece.content)
    if piece.last:
        place.rename(part, name)


def _place(folder: Path, name: str) -> tuple[Folder, str]:
    """Where a file is, below the folder and never behind a link."""
    *inner, last = name.split("/")
    place = Folder(folder)
    for part in inner:
        place = place / part
    return place, last


def keep_only(names: Collection[str], folder: Path) -> None:
    """Remove files that the other side no longer has."""
    for name in Sender(folder).files():
        if name not in names:
            place, last = _place(folder, name)
            place.remove(last)


def own_folder(out: Path) -> Folder:
    """Where a process that does not see `out` keeps what it computes for it.

    Others can write beside it, and know its name: whoever writes into it makes it private first.
    """
    return Folder(Path(gettempdir())) / f"episodica-{blake2b(bytes(out), digest_size=6).hexdigest()}"


def progress(folder: Path) -> str:
    """The name of the last checkpoint, which says how far a run has come; empty where there is none."""
    names = (Folder(folder) / "checkpoints").files("*.json")
    return max((name.removesuffix(".json") for name in names), default="")
