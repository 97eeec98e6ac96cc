"""What is shared of a model: its present state and its encoder, with a card.

Earlier states, the history of changes and work in progress stay at home, and so do images unless they are asked for.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from episodica.classifier.model_copy import ENCODER, IMAGES, POINTER, STATES, Files, read_model
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.pointer import Pointer
from episodica.classifier.sharing.card import model_card, run_card
from episodica.classifier.sharing.hub import Hub
from episodica.classifier.sharing.run_files import is_run, run_files
from episodica.errors import InputError

CARD = "README.md"


class Package(NamedTuple):
    """All that is sent, by the name on the Hub."""

    files: dict[str, bytes]
    notes: tuple[str, ...]  # what a person should know before it is sent

    @property
    def bytes(self) -> int:
        return sum(map(len, self.files.values()))


def package(path: Path, repository: str, *, images: bool = False, licence: str | None = None) -> Package:
    if is_run(path):
        if images:
            raise InputError(f"{path} is a run, of which no images are shared: leave --images out")
        files, results = run_files(path)
        card, notes = run_card(results, repository, licence), ()
    else:
        folder = ModelFolder(path)
        files, card = _model_files(folder, images), model_card(folder.state(), repository, images, licence)
        notes = tuple(_notes(folder, images))
    named = {"/".join(parts): data for parts, data in files.items()}
    return Package({CARD: card.encode(), **named}, notes)


def _model_files(folder: ModelFolder, images: bool) -> Files:
    state = folder.state()
    pointer = {"format": state.record.format, **asdict(Pointer(state.id, None))}
    digests = {IMAGES: state.record.digests if images else set(), ENCODER: state.encoder_digests}

    def stays(parts: tuple[str, ...]) -> bool:
        if parts[0] == STATES:
            return parts[1] == state.id
        return parts[0] in digests and parts[1].partition(".")[0] in digests[parts[0]]

    files = {parts: data for parts, data in read_model(folder.path).items() if stays(parts)}
    return {**files, (POINTER,): (json.dumps(pointer, indent=2) + "\n").encode()}


def _notes(folder: ModelFolder, images: bool) -> list[str]:
    state = folder.state()
    kept = len(state.record.digests)
    notes = []
    if kept and images:
        notes.append(f"{kept} images that the model keeps are sent too: whoever sees the repository sees them")
    elif kept:
        notes.append(f"the {kept} images that the model keeps stay here (--images sends them too)")
    if state.exact:
        notes.append(
            "a point for every image that was learned is part of the model, and so are the names of its classes"
        )
    else:
        notes.append("the weights have seen every image that was learned, and the names of the classes are sent")
    return notes


def push(what: Package, repository: str, *, private: bool = False) -> str:
    """The commit under which it can be named from now on."""
    return Hub().commit(repository, what.files, "Shared by episodica", private=private)
