"""Everything back where it was, by the CSV file that says where it went.

Asked again after it was killed, it goes on. An image is removed from its new place only where it is in its old one;
what was changed since, or whose old place is taken, stays and is named.
"""

from collections.abc import Callable, Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from episodica.data.image_formats import is_image_file, is_unread_image_file
from episodica.files.door import Folder
from episodica.files.placing import Changed, Seen, Spot, Taken, place
from episodica.sorting.carrying import BATCH, give_up
from episodica.sorting.ledger import Ledger
from episodica.sorting.lines import read
from episodica.sorting.names import UNKNOWN
from episodica.sorting.order import Order, below


def undo(
    to: Folder, csv: str, ledger: Ledger, on_image: Callable[[str, str | None], None] = lambda image, problem: None
) -> None:
    """`on_image` gets each image, and why it is not back, if so."""
    run = ledger.run_of(csv)
    if run is not None:
        give_up(Order(run.inbox, to, run.how), ledger, run.id)
    folders: set[str] = set()
    with TextIOWrapper(to.open_own(csv), "utf-8", newline="") as file:  # it says what is to be moved where
        lines = read(file, str(to.path / csv))
        for batch in _batches(lines):
            back = []
            for image, new, _, digest in batch:
                problem = _put_back(Path(image), to, new, digest)
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


def _put_back(old: Path, to: Folder, new: str, digest: str) -> str | None:
    """None where it is back, or why it is not."""
    if not old.is_absolute() or not (is_image_file(old) or is_unread_image_file(old)):
        return "no image was there: the file is not as `sort` wrote it"
    folder, _, name = new.rpartition("/")
    here, there = Spot(Folder(old.parent), old.name), Spot(below(to, folder) if folder else to, name)
    present, status = there.digest(), there.status
    if present is None or status is None:
        return None if here.digest() == digest else f"is no longer at {there}"
    if present != digest:
        return f"has changed since at {there}"
    try:
        place("move", there, here, Seen(status.st_size, status.st_mtime_ns, digest))
    except Taken:
        return f"something else has its old place; it is at {there}"
    except Changed:
        return f"is being changed at {there}"
    return None


def _batches(lines: Iterator[tuple[str, str, str, str]]) -> Iterator[list[tuple[str, str, str, str]]]:
    while batch := list(islice(lines, BATCH)):
        yield batch
