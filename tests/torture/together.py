"""Two processes on one folder: the first stops before an operation, the second comes and goes, the first goes on.

Whatever they say, the folder must be as if those that succeeded had come one after the other.
"""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from torture.counting import LEAST, Count
from torture.faults import Ground, Whole
from torture.layer import Child, Ended, Fault, How, attempt
from torture.stories import Story

PATIENCE = 1.0  # seconds after which the second process is taken to wait for the first


def meet(story: Story, place: Path, share: float, until: float | None) -> Count:
    """Stopped before every operation or, drawn at random, a share of them or as many as there is time for."""
    ground, count, began = Ground(place), Count(f"{story.name}, two at once"), time.monotonic()
    whole = ground.begin(story)
    seconds = {"the same": story.act} | ({"another": story.beside} if story.beside else {})
    allowed = {name: _one_after_the_other(story, second, ground) for name, second in seconds.items()}
    trials = [(n, name) for n in range(1, whole.operations + 1) for name in seconds]
    Random(story.name).shuffle(trials)
    for n, name in trials[: max(1, round(share * len(trials)))]:
        if until is not None and time.monotonic() > until and count.tried.total() >= LEAST:
            break
        ground.restore()
        first, second = at_once(story.act, seconds[name], ground, n)
        count.wrong += [
            f"{count.name}, stopped at {n}, {name} command: {sentence}"
            for sentence in _wrong(story, ground, whole, (first, second), allowed[name])
        ]
        count.tried[f"{name} command"] += 1
    count.seconds = time.monotonic() - began
    return count


def at_once(act: Callable[[], int], beside: Callable[[], int], ground: Ground, n: int) -> tuple[Ended, Ended]:
    first = Child(act, ground.root, Fault(How.STOP, n))
    first.stopped()
    second = Child(beside, ground.root)
    second.ends_within(PATIENCE)
    first.send(signal.SIGCONT)
    return first.ended(), second.ended()


Allowed = dict[tuple[bool, bool], list[Any]]  # who has succeeded: what is then there


def _one_after_the_other(story: Story, second: Callable[[], int], ground: Ground) -> Allowed:
    allowed: Allowed = {}
    for order in ([0], [1], [0, 1], [1, 0]):
        ground.restore()
        worked = [False, False]
        for which in order:
            worked[which] = attempt((story.act, second)[which], ground.root).code == 0
        allowed.setdefault((worked[0], worked[1]), []).append(story.done(ground.root))
    return allowed


def _wrong(story: Story, ground: Ground, whole: Whole, ended: tuple[Ended, Ended], allowed: Allowed) -> list[str]:
    found = [f"ended with {one.code}: {one.said[-600:]}" for one in ended if not one.clean]
    worked = (ended[0].code == 0, ended[1].code == 0)
    left = story.done(ground.root)
    if not any(worked):
        found.append(f"neither succeeded: {[one.said[-300:] for one in ended]}")
    elif left not in allowed.get(worked, []):
        found.append(f"{worked} succeeded, and it is {left}, not one of {allowed.get(worked)}")
    if parts := ground.left_behind():
        found.append(f"left behind: {parts}")
    return found
