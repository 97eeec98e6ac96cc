"""What a user has asked to be sorted, and the places that it is about."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from episodica.errors import InputError
from episodica.files.door import Folder, Refused
from episodica.files.placing import How, Spot
from episodica.sorting import inbox
from episodica.sorting.ledger import Image
from episodica.sorting.lines import Line


@dataclass(frozen=True)
class Order:
    inbox: Path  # as it was named; the ledger and the list have where that is
    to: Folder
    how: How
    leave_out: tuple[Path, ...] = ()  # folders with images that are not to be sorted, such as the model's
    dry: bool = False  # nothing is touched
    on_line: Callable[[Line], None] = lambda line: None  # gets what was done, or would be

    def check(self) -> None:
        if not self.inbox.is_dir():
            raise InputError(f"{self.inbox} is no folder: name the one with the images to sort")
        if self.inbox.resolve() == self.to.path.resolve():
            raise InputError(f"{self.inbox} cannot be sorted into itself: name another folder with --to")
        if self.is_inside and self.how != "move":
            raise InputError(
                f"{self.inbox} lies in {self.to}, where a copy would be there twice: add --move, or sort elsewhere"
            )

    @property
    def is_inside(self) -> bool:
        """Whether what was sorted once is sorted again."""
        return self.to.path.resolve() in self.inbox.resolve().parents


def source(image: Image) -> Spot:
    return inbox.spot(Path(os.fsdecode(image.inbox)), image.path)


def is_reachable(place: Spot) -> bool:
    """Through folders alone: whoever may write to an inbox can put a link there at any moment."""
    try:
        return place.status is not None
    except Refused:
        return False


def target(to: Folder, image: Image) -> Spot:
    assert image.folder is not None
    assert image.name is not None
    return Spot(below(to, image.folder), image.name)


def below(to: Folder, names: str) -> Folder:
    for name in names.split("/"):
        to = to / name
    return to
