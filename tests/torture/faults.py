"""One fault at one operation of a command: is the folder in the old state or in the new one, and does the same command
then end as if nothing had happened, to the bit?
"""

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from torture.counting import LEAST, Count
from torture.layer import Ended, Fault, How, attempt
from torture.power import MANNERS, Disk, cut, operations, write_out
from torture.stories import Story, by_the_clock, prepare

FAULTS = {  # what goes wrong at the n-th operation
    "killed before": (How.KILL, 0),
    "killed within": (How.TEAR, 0),
    "failed once": (How.FAIL, errno.EIO),
    "disk full from then on": (How.FULL, errno.ENOSPC),
    "clock leaps back": (How.LEAP, -4000),
    "clock leaps ahead": (How.LEAP, 4000),
}
POWER = "power cut"


@dataclass(frozen=True)
class Whole:
    """A story where nothing goes wrong."""

    old: Any  # states
    new: Any
    done: Any  # what the command is for
    operations: int
    log: Path


class Ground:
    """The folder that is tortured, and how it was before."""

    def __init__(self, place: Path) -> None:
        self.root, self.kept, self.log = place / "root", place / "kept", place / "log"

    def begin(self, story: Story) -> Whole:
        """Prepare the folder, and tell the story twice."""
        prepare(story, self.root)
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.root, self.kept, symlinks=True)
        old = story.state(self.root)
        shutil.rmtree(self.log, ignore_errors=True)
        ended = attempt(story.act, self.root, log=self.log)
        assert ended.code == 0, f"{story.name} fails where nothing goes wrong: {ended.said}"
        whole = Whole(old, story.state(self.root), story.done(self.root), ended.operations, self.log)
        self.restore()
        again = attempt(story.act, self.root)
        assert story.state(self.root) == whole.new, f"{story.name} does not end the same twice: {again.said}"
        return whole

    def restore(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self.kept, self.root, symlinks=True)
        os.chdir(self.root)

    def become(self, content: dict[str, Any]) -> None:
        shutil.rmtree(self.root)
        write_out(content, self.root)
        os.chdir(self.root)

    def left_behind(self) -> list[str]:
        return [str(path) for path in self.root.rglob("*.part")]


def torture(story: Story, place: Path, share: float, until: float | None) -> Count:
    """Every fault at every operation or, drawn at random, a share of them or as many as there is time for."""
    ground, count, began = Ground(place), Count(story.name), time.monotonic()
    whole = ground.begin(story)
    faults = _faults(story, ground, whole)
    Random(story.name).shuffle(faults)
    for name, happen in faults[: max(len(FAULTS) + 1, round(share * len(faults)))]:
        if until is not None and time.monotonic() > until and count.tried.total() >= LEAST:
            break
        kind = name.split(":")[0]
        ended = happen()
        try:
            found = _after_leap(story, ground, whole, ended) if "clock" in kind else after(story, ground, whole, ended)
            count.wrong += [f"{story.name}, {name}: {sentence}" for sentence in found]
        except Exception as error:
            count.wrong.append(f"{story.name}, {name}: {type(error).__name__}: {error}")
        count.tried[kind] += 1
    count.notes = f"{whole.operations} operations, {len(faults):,} faults"
    count.seconds = time.monotonic() - began
    return count


def _faults(story: Story, ground: Ground, whole: Whole) -> list[tuple[str, Callable[[], Ended | None]]]:
    """Each with a name, and how to let it happen."""

    def at_operation(fault: Fault) -> Ended:
        ground.restore()
        return attempt(partial(by_the_clock, story.act) if fault.how is How.LEAP else story.act, ground.root, fault)

    def power_cut(n: int, manner: str) -> None:
        ground.become(cut(disk, done[:n], manner))

    disk, done = Disk.of(ground.kept), operations(whole.log, ground.root)
    numbers = range(1, whole.operations + 1)
    return [
        *((f"{name}: {n}", partial(at_operation, Fault(how, n, value)))
          for name, (how, value) in FAULTS.items() for n in numbers),
        *((f"{POWER}: {n} {manner}", partial(power_cut, n, manner)) for n in numbers for manner in MANNERS),
    ]  # fmt: skip


def after(story: Story, ground: Ground, whole: Whole, ended: Ended | None) -> Iterator[str]:
    """What is wrong after a fault; none ended: the power was cut."""
    if ended is not None and ended.code is not None and not ended.clean:
        yield f"ended with a trace: {ended.said[-600:]}"
    found = story.state(ground.root)
    if found not in (whole.old, whole.new):
        yield f"neither old nor new: {found}"
    again = attempt(story.act, ground.root)
    unfinished = found != whole.new
    if not again.clean or (unfinished and again.code != 0):
        yield f"the same command ended with {again.code}: {again.said[-600:]}"
    if unfinished and story.state(ground.root) != whole.new:
        yield f"the same command ended otherwise: {story.state(ground.root)} and not {whole.new}"
    yield from _in_the_end(story, ground, whole)


def _after_leap(story: Story, ground: Ground, whole: Whole, ended: Ended | None) -> Iterator[str]:
    """A clock that is wrong changes what is written about time, and nothing else."""
    if ended is None or ended.code != 0:
        yield f"ended otherwise than by the right time: {ended}"
    if story.done(ground.root) != whole.done:
        yield f"not done: {story.done(ground.root)} and not {whole.done}"
    again = attempt(partial(by_the_clock, story.act), ground.root)
    if not again.clean:
        yield f"by the right time, the same command ended with {again.code}: {again.said[-600:]}"
    yield from _in_the_end(story, ground, whole)


def _in_the_end(story: Story, ground: Ground, whole: Whole) -> Iterator[str]:
    if story.done(ground.root) != whole.done:
        yield f"not done in the end: {story.done(ground.root)} and not {whole.done}"
    if left := ground.left_behind():
        yield f"left behind: {left}"
