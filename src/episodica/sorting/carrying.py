"""Plans become files in their places, a line in the CSV file, and a mark in the ledger; in this order, so that whatever
was not marked can be done again."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from episodica.files.door import Folder, Refused
from episodica.files.placing import Changed, How, Taken, place
from episodica.sorting.ledger import Image, Ledger, Run
from episodica.sorting.lines import Line, header, written
from episodica.sorting.order import Order, below, is_reachable, source, target
from episodica.sorting.planning import Planner

BATCH = 50
DONE: dict[How, str] = {"copy": "copied", "link": "linked", "move": "moved"}


def carry_out(order: Order, ledger: Ledger, number: int, on_done: Callable[[int], None] = lambda images: None) -> None:
    """All that a run has planned; an earlier one in the way that was asked for then."""
    while batch := ledger.images(number, "planned", BATCH):
        run = ledger.run(number)
        lines = [(image.id, _carry_out_one(order, ledger, run, image)) for image in batch]
        if not order.dry:
            _sync(order, run, batch, [line for _, line in lines])
        end = run.csv_bytes if order.dry else _append(order.to, run, written(line for _, line in lines))
        with ledger.transaction():
            for image, line in lines:
                _mark(ledger, image, line)
            ledger.mark(number, csv_bytes=end)
        for _, line in lines:
            order.on_line(line)
        on_done(len(lines))


def give_up(order: Order, ledger: Ledger, run: int) -> None:
    """A run that does not go on: what was planned is done, what was only looked at will be listed anew."""
    carry_out(order, ledger, run)
    with ledger.transaction():
        ledger.drop_undecided(run)
        ledger.mark(run, finished=1)


def _carry_out_one(order: Order, ledger: Ledger, run: Run, image: Image) -> Line:
    why = image.why or ""
    while image.folder is not None:
        try:
            if not order.dry:
                place(run.how, source(image), target(order.to, image), image.seen)
            return _line(image, f"{image.folder}/{image.name}", DONE[run.how], why)
        except Taken:
            image = _elsewhere(order, ledger, run, image)
            why = image.why or ""
        except Changed:
            why = "changed while it was sorted: sort again"
            break
        except (FileNotFoundError, PermissionError) as error:
            if not _is_about(error, run.inbox):
                raise
            why = f"cannot be sorted: {(error.strerror or str(error)).lower()}"
            break
        except Refused as error:
            if is_reachable(source(image)):
                raise
            why = f"cannot be sorted: {error}"
            break
    return _line(image, "", "double" if image.double else "left", why)


def _sync(order: Order, run: Run, batch: Sequence[Image], lines: Sequence[Line]) -> None:
    """The names are on the disk, and after a move those of the old places are gone from it."""
    for folder in {line.to.rpartition("/")[0] for line in lines if line.to}:
        below(order.to, folder).sync()
    if run.how == "move":
        for folder in {source(image).folder for image in batch}:
            with suppress(FileNotFoundError, PermissionError, Refused):  # as the line of its images says
                folder.sync()


def _elsewhere(order: Order, ledger: Ledger, run: Run, image: Image) -> Image:
    """Its name was taken in the meantime, by somebody else or by a system that reads names in its own way."""
    assert image.folder is not None
    with ledger.transaction():
        Planner(order, ledger, run.id).find_name(image, image.folder, image.seen.digest)
    return ledger.image(image.id)


def _is_about(error: OSError, inbox: Path) -> bool:
    """Such an image is left where it is; trouble with the folder that is sorted into ends everything."""
    return isinstance(error.filename, str) and Path(error.filename).is_relative_to(inbox)


def _mark(ledger: Ledger, image: int, line: Line) -> None:
    if not line.to:
        ledger.change(image, stage="left", why=line.why, folder=None, name=None, key=None, digest=None, group=None)
    else:
        ledger.change(image, stage="done")


def _append(to: Folder, run: Run, text: str) -> int:
    """Behind what the ledger knows to be true; where the file ends then."""
    with to.open_to_continue(run.csv) as file:
        os.fchmod(file.fileno(), 0o644)  # nobody else may write what `undo` believes
        file.truncate(min(run.csv_bytes, os.fstat(file.fileno()).st_size))
        file.seek(0, os.SEEK_END)
        file.write(((header() if not file.tell() else "") + text).encode())
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def _line(image: Image, to: str, done: str, why: str) -> Line:
    path = f"{os.fsdecode(image.inbox)}/{os.fsdecode(image.path)}"
    facts = (image.class_ or "", image.probability, image.strangeness, image.limit)
    return Line(path, to, done, *facts, why, image.bytes, image.digest or "")
