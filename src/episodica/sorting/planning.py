"""Where each image will go, decided before any file is touched; all of it in the ledger."""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from episodica.classifier.groups import ALONE
from episodica.files.placing import Spot
from episodica.sorting.ledger import Image, Ledger
from episodica.sorting.looking import Verdict
from episodica.sorting.names import SINGLE, UNKNOWN, UNSURE, file_name
from episodica.sorting.order import Order, below, is_reachable, source, target
from episodica.sorting.unknown import numbers

AT_ONCE = 1000  # images of which the ledger is asked


@dataclass(frozen=True)
class Planner:
    """Every change is made within a transaction of the caller, but for `group`, which is one."""

    order: Order
    ledger: Ledger
    run: int

    def plan(self, image: Image, verdict: Verdict, state: str) -> None:
        """By what the model, in this state, says."""
        self.ledger.change(image.id, **verdict.facts)
        if verdict.answer is None:
            return self.leave(image, verdict.why)
        assert verdict.digest is not None, "it was read"
        double = self._double(image, verdict.digest)
        if double is not None:
            return self.leave(image, f"has the same content as {double}", double=True)
        if verdict.place is not None:
            return self.ledger.change(image.id, stage="waiting", place=verdict.place, state=state)
        assert verdict.answer.best is not None, "it fits a class"
        folder = self.ledger.folder_of(verdict.answer.best) if verdict.sure else UNSURE
        return self.find_name(image, folder, verdict.digest)

    def leave(self, image: Image, why: str, *, double: bool = False) -> None:
        """Where it is; where it is a double, all is well."""
        nowhere = dict.fromkeys(("folder", "name", "key", "digest"))
        self.ledger.change(image.id, stage="planned", why=why, double=int(double), **nowhere)

    def find_name(self, image: Image, folder: str, digest: str) -> None:
        """The first one in a folder that is free; or none, where the image is there already."""
        here = source(image).status if is_reachable(source(image)) else None
        for name in self.ledger.names(folder, file_name(os.fsdecode(image.path).rpartition("/")[2])):
            spot = Spot(below(self.order.to, folder), name)
            there = spot.status
            if there is None:
                return self.ledger.plan(image.id, folder, name)
            if _same_file(here, there):
                return self.leave(image, "is in its place already", double=True)
            if stat.S_ISREG(there.st_mode) and there.st_size == image.bytes and spot.digest() == digest:
                return self.leave(image, f"has the same content as {folder}/{name}", double=True)
        raise AssertionError("there is always one more name")

    def group(self, state: str, reach: float | None, on_progress: Callable[[int, int], None]) -> None:
        """The images of this pass that fit no class, all of them at once."""
        waiting, done = self.ledger.count(self.run, "waiting"), 0
        if not waiting:
            return
        on_progress(0, waiting)
        first = max(self.ledger.last_group(), self._last_folder()) + 1
        groups = iter(numbers(self.ledger.places(self.run), self.ledger.grouped(state), reach, first).tolist())
        with self.ledger.transaction():
            while batch := self.ledger.images(self.run, "waiting", AT_ONCE):
                for image in batch:
                    assert image.digest is not None, "it was read"
                    number = next(groups)
                    folder = f"{UNKNOWN}/{SINGLE if number == ALONE else number}"
                    like = "like no other image" if number == ALONE else f"like the others in {folder}"
                    self.ledger.change(image.id, group=number, why=f"{image.why}; {like}")
                    self.find_name(image, folder, image.digest)
                done += len(batch)
                on_progress(done, waiting)

    def _double(self, image: Image, digest: str) -> str | None:
        """Another image with the same bytes that is in its place already, or is about to be."""
        other = self.ledger.same_content(digest, image.id)
        if other is None:
            return None
        if other.stage != "done" or (self.order.dry and other.run == self.run):
            return os.fsdecode(other.path)
        there = target(self.order.to, other).status
        if there is not None and not (self.order.is_inside and _same_file(source(image).status, there)):
            return f"{other.folder}/{other.name}"
        self.ledger.drop(other.id)  # somebody has removed it; or it is this very file, sorted once more
        return self._double(image, digest)

    def _last_folder(self) -> int:
        """Folders may be there that this ledger knows nothing of."""
        return max((int(name) for name in (self.order.to / UNKNOWN).folders() if name.isdecimal()), default=0)


def _same_file(one: os.stat_result | None, other: os.stat_result) -> bool:
    return one is not None and (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
