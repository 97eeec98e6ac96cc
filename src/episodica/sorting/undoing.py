"""Everything back where it was, by the CSV file that says where it went.

Asked again after it was killed, it goes on. An image is removed from its new place only where it is in its old one;
what was changed since, or whose old place is taken, stays and is named.
"""

import os
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from episodica.data.image_formats import is_image_file, is_unread_image_file
from episodica.errors import InputError
from episodica.files.door import Folder, Refused
from episodica.files.placing import Changed, How, Seen, Spot, Taken, place
from episodica.sorting.carrying import BATCH, give_up
from episodica.sorting.inbox import spot
from episodica.sorting.ledger import Ledger, Run
from episodica.sorting.lines import read
from episodica.sorting.names import UNKNOWN
from episodica.sorting.order import Order, below


class Undone(NamedTuple):
    how: How  # what was undone
    back: int = 0  # images that were away from their old places
    removed: int = 0  # copies or links whose originals were never away


class Stays(Exception):
    """An image that is not put back, and why."""


def undo(
    to: Folder, csv: str, ledger: Ledger, on_image: Callable[[str, str | None], None] = lambda image, problem: None
) -> Undone:
    """`on_image` gets each image, and why it is not back, if so."""
    run = ledger.run_of(csv)
    if run is None:
        raise InputError(f"the ledger in {to} knows no list {csv}: give the file the name that `sort` gave it")
    give_up(Order(run.inbox, to, run.how), ledger, run.id)
    done, folders = Undone(run.how), set[str]()
    with TextIOWrapper(to.open_own(csv), "utf-8", newline="") as file:  # it says what is to be moved where
        lines = read(file, str(to.path / csv))
        for batch in _batches(lines):
            emptied = []
            for image, new, _, digest in batch:
                try:
                    was_away = _put_back(image, run, to, new, digest)
                except Stays as problem:
                    on_image(image, str(problem))
                    continue
                done = done._replace(back=done.back + was_away, removed=done.removed + (not was_away))
                on_image(image, None)
                emptied.append(new)
                folders.add(new.rpartition("/")[0])
            with ledger.transaction():
                for new in emptied:
                    ledger.drop_at(new)
    for folder in sorted(folders, reverse=True):
        above, _, name = folder.rpartition("/")
        (below(to, above) if above else to).remove_if_empty(name)
    to.remove_if_empty(UNKNOWN)
    return done


def _put_back(image: str, run: Run, to: Folder, new: str, digest: str) -> bool:
    """Whether it was away from its old place."""
    old, above = Path(image), f"{run.inbox}/"
    if not image.startswith(above):
        raise Stays("came from elsewhere: the list is not as `sort` wrote it")
    if not (is_image_file(old) or is_unread_image_file(old)):
        raise Stays("no image was there: the list is not as `sort` wrote it")
    folder, _, name = new.rpartition("/")
    here = spot(run.inbox, os.fsencode(image.removeprefix(above)))
    there = Spot(below(to, folder) if folder else to, name)
    present, status = there.digest(), there.status
    if present not in (None, digest):
        raise Stays(f"has changed since at {there}")
    try:
        was_away = run.how == "move" or here.status is None
        if present and status:
            place("move", there, here, Seen(status.st_size, status.st_mtime_ns, digest))
        elif here.digest() != digest:
            raise Stays(f"is no longer at {there}")
    except Taken:
        raise Stays(f"something else has its old place; it is at {there}") from None
    except Changed:
        raise Stays(f"is being changed at {there}") from None
    except Refused as error:  # a link in the way to its old place, or something else that is no folder
        raise Stays(str(error)) from None
    return was_away


def _batches(lines: Iterator[tuple[str, str, str, str]]) -> Iterator[list[tuple[str, str, str, str]]]:
    while batch := list(islice(lines, BATCH)):
        yield batch
