"""Everything back where it was, by the CSV file that says where it went.

Asked again after it was killed, it goes on. An image is removed from its new place only where it is in its old one;
what was changed since, or whose old place is taken, stays and is named.
"""

import os
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from episodica.data.image_formats import is_image_file, is_unread_image_file
from episodica.errors import InputError
from episodica.files.door import Folder, Refused
from episodica.files.placing import Changed, Seen, Spot, Taken, place
from episodica.sorting.carrying import BATCH, give_up
from episodica.sorting.inbox import spot
from episodica.sorting.ledger import Ledger
from episodica.sorting.lines import read
from episodica.sorting.names import UNKNOWN
from episodica.sorting.order import Order, below


def undo(
    to: Folder, csv: str, ledger: Ledger, on_image: Callable[[str, str | None], None] = lambda image, problem: None
) -> None:
    """`on_image` gets each image, and why it is not back, if so."""
    run = ledger.run_of(csv)
    if run is None:
        raise InputError(f"the ledger in {to} knows no list {csv}: give the file the name that `sort` gave it")
    give_up(Order(run.inbox, to, run.how), ledger, run.id)
    folders: set[str] = set()
    with TextIOWrapper(to.open_own(csv), "utf-8", newline="") as file:  # it says what is to be moved where
        lines = read(file, str(to.path / csv))
        for batch in _batches(lines):
            back = []
            for image, new, _, digest in batch:
                problem = _put_back(image, run.inbox, to, new, digest)
                on_image(image, problem)
                if problem is None:
                    back.append(new)
                    folders.add(new.rpartition("/")[0])
            with ledger.transaction():
                for new in back:
                    ledger.drop_at(new)
    for folder in sorted(folders, reverse=True):
        above, _, name = folder.rpartition("/")
        (below(to, above) if above else to).remove_if_empty(name)
    to.remove_if_empty(UNKNOWN)


def _put_back(image: str, inbox: Path, to: Folder, new: str, digest: str) -> str | None:
    """None where it is back, or why it is not."""
    old, above = Path(image), f"{inbox}/"
    if not image.startswith(above):
        return "came from elsewhere: the list is not as `sort` wrote it"
    if not (is_image_file(old) or is_unread_image_file(old)):
        return "no image was there: the list is not as `sort` wrote it"
    folder, _, name = new.rpartition("/")
    there = Spot(below(to, folder) if folder else to, name)
    try:
        return _moved_back(spot(inbox, os.fsencode(image.removeprefix(above))), there, digest)
    except Taken:
        return f"something else has its old place; it is at {there}"
    except Changed:
        return f"is being changed at {there}"


def _moved_back(here: Spot, there: Spot, digest: str) -> str | None:
    present, status = there.digest(), there.status
    if present is not None and status is not None and present != digest:
        return f"has changed since at {there}"
    try:
        if present is None or status is None:
            return None if here.digest() == digest else f"is no longer at {there}"
        place("move", there, here, Seen(status.st_size, status.st_mtime_ns, digest))
    except Refused as error:  # a link in the way to its old place, or something else that is no folder
        return str(error)
    return None


def _batches(lines: Iterator[tuple[str, str, str, str]]) -> Iterator[list[tuple[str, str, str, str]]]:
    while batch := list(islice(lines, BATCH)):
        yield batch
