"""Images of an inbox go into a folder for each class. Killed at any moment, the same call goes on where it was.

A pass lists what there is, looks at it batch by batch, and puts it where it belongs; images that fit no class come
last, when all of them can be grouped. What is to be done with a batch is in the ledger before the first file is
touched, and that it is done after the last one. So at most one batch is in between, and doing it again does nothing
twice.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from episodica.sorting.carrying import BATCH, carry_out, give_up
from episodica.sorting.inbox import Found, identity, walk
from episodica.sorting.ledger import Image, Ledger, Run
from episodica.sorting.looking import Looked, Model, look_each, looked_at_together
from episodica.sorting.names import list_name
from episodica.sorting.order import Order, target
from episodica.sorting.planning import Planner

LISTED_AT_ONCE = 1000

OnStage = Callable[[str, int, int | None], None]
Looks = Callable[[Iterator[Sequence[Image]]], Iterator[tuple[Sequence[Image], Looked]]]  # every batch, in order


@dataclass
class Sorting:
    """An order that is being carried out, by one state of a model: a run of the ledger."""

    order: Order
    ledger: Ledger
    model: Model
    is_settled: Callable[[Found], bool] = lambda found: True
    on_stage: OnStage = lambda stage, done, total: None
    looks: Looks | None = None  # another way to look at batches than one after another in this process
    run: int = field(init=False)

    def __post_init__(self) -> None:
        """With the run that was begun for the same order, or else with a new one."""
        self._inbox = os.fsencode(self.order.inbox.resolve())
        self._settings = f"{self.model.state} certainty {self.model.certainty:g}"
        begun = self.ledger.unfinished()
        if begun is not None and not self._is_same(begun):
            give_up(self.order, self.ledger, begun.id)
        if begun is not None and self._is_same(begun):
            self.run = begun.id
        else:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            self.run = self.ledger.begin(self._inbox, self.order.how, self._settings, now, self._new_csv())
        self._planner = Planner(self.order, self.ledger, self.run)

    def to_the_end(self) -> None:
        """What was begun, then what has come since."""
        if self.ledger.run(self.run).listed:
            self.one_pass()
        self.one_pass()
        self.finish()

    def one_pass(self) -> int:
        """How many images it was about."""
        carry_out(self.order, self.ledger, self.run)
        if not self.ledger.run(self.run).listed:
            self._list()
        total, done = self.ledger.count(self.run, "listed", "waiting", "planned"), 0
        for batch, looked in (self.looks or partial(look_each, self.model))(self._batches()):
            self._plan(batch, looked)
            done += len(batch)
            carry_out(self.order, self.ledger, self.run)
            self.on_stage("sorting", done, total)
        self._place_unknown()
        with self.ledger.transaction():
            self.ledger.mark(self.run, listed=0)
        return total

    def finish(self) -> None:
        with self.ledger.transaction():
            self.ledger.mark(self.run, finished=1)

    def _is_same(self, run: Run) -> bool:
        asked = (Path(os.fsdecode(self._inbox)), self.order.how, self._settings)
        return (run.inbox, run.how, run.settings) == asked

    def _list(self) -> None:
        inbox = Path(os.fsdecode(self._inbox))
        here = identity(inbox)
        leave_out = {identity(self.order.to.path), *map(identity, self.order.leave_out)} - {here}
        listed = 0
        for part in _parts(walk(inbox, leave_out)):
            with self.ledger.transaction():
                for found in part:
                    self._list_one(found)
            listed += len(part)
            self.on_stage("listing", listed, None)
        with self.ledger.transaction():
            self.ledger.mark(self.run, listed=1)

    def _list_one(self, found: Found) -> None:
        """Unless it is known, and what became of it still holds."""
        size, modified = found.status.st_size, found.status.st_mtime_ns
        last = self.ledger.last(self._inbox, found.path)
        if last is not None and (last.bytes, last.modified) == (size, modified):
            is_there = last.stage == "done" and target(self.order.to, last).status is not None
            if last.stage in ("listed", "waiting", "planned") or (last.stage == "left" and last.run == self.run):
                return
            if is_there and self.order.how != "move":
                return
            if not is_there:
                self.ledger.drop(last.id)
        if not self.is_settled(found):
            return
        number = self.ledger.add(self.run, self._inbox, found.path, size, modified)
        if found.problem:
            self.ledger.change(number, stage="planned", why=found.problem)

    def _batches(self) -> Iterator[Sequence[Image]]:
        """Of what is listed; a batch may be asked for before those before it are planned."""
        last = None
        while batch := looked_at_together(self.ledger.images(self.run, "listed", BATCH, last)):
            yield batch
            last = batch[-1]

    def _plan(self, batch: Sequence[Image], looked: Looked) -> None:
        with self.ledger.transaction():
            for image in batch:
                found = looked[image.id]
                if found is None:  # gone since it was listed
                    self.ledger.drop(image.id)
                elif isinstance(found, str):
                    self._planner.leave(image, found)
                else:
                    self._planner.plan(image, found, self.model.state)
                    if found.reach is not None:
                        self.ledger.mark(self.run, reach=found.reach)

    def _place_unknown(self) -> None:
        reach = self.ledger.run(self.run).reach
        self._planner.group(
            self.model.state, reach, lambda done, total: self.on_stage("grouping unknown images", done, total)
        )
        total, done = self.ledger.count(self.run, "planned"), 0

        def on_done(images: int) -> None:
            nonlocal done
            done += images
            self.on_stage("placing unknown images", done, total)

        carry_out(self.order, self.ledger, self.run, on_done)

    def _new_csv(self) -> str:
        number = 1
        while self.order.to.has(list_name(number)) or self.ledger.run_of(list_name(number)):
            number += 1
        return list_name(number)


def _parts(found: Iterator[Found]) -> Iterator[tuple[Found, ...]]:
    while part := tuple(islice(found, LISTED_AT_ONCE)):
        yield part
