"""A model as plain bytes: to copy its folder, and to carry it inside whatever a program writes.

Only files that a model consists of are read and written, by the door to folders of strangers; whether they belong
together is checked when the copy is read, by the digests that every state has.
"""

from collections.abc import Mapping
from pathlib import Path

from episodica.classifier.encoder_files import is_encoder
from episodica.classifier.history import is_history
from episodica.classifier.state_files import OF_A_STATE, is_id
from episodica.classifier.vault import is_image
from episodica.files.door import Folder

POINTER, STATES, IMAGES, ENCODER, HISTORY = "model.json", "states", "images", "encoder", "history"
MOST = 2**31  # bytes of a file

Files = dict[tuple[str, ...], bytes]  # by the names of folders and file


def read_model(path: Path) -> Files:
    """All files of its states and its history; work in progress stays behind."""
    folder = Folder(path)
    files: Files = {(POINTER,): folder.read(POINTER, MOST)}
    for id in filter(is_id, (folder / STATES).folders()):
        inner = folder / STATES / id
        files |= {(STATES, id, name): inner.read(name, MOST) for name in inner.files() if name in OF_A_STATE}
    for place, belongs in ((IMAGES, is_image), (ENCODER, is_encoder), (HISTORY, is_history)):
        inner = folder / place
        files |= {(place, name): inner.read(name, MOST) for name in inner.files() if belongs(name)}
    return files


def write_model(files: Mapping[tuple[str, ...], bytes], path: Path) -> None:
    """Into a new folder; what names a state and images comes last."""
    folder = Folder(path)
    for (*place, name), data in sorted(files.items(), key=lambda file: file[0] == (POINTER,)):
        _inside(folder, tuple(place)).write_bytes(name, data)


def _inside(folder: Folder, place: tuple[str, ...]) -> Folder:
    for name in place:
        folder = folder / name
    return folder
