"""`kill -9` at random moments, again and again: does the command that comes after it end as if nothing had happened?"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from torture.counting import MOST_WRONG, Count
from torture.faults import Ground, after
from torture.layer import Child, attempt
from torture.stories import Story

KILLS = "kill -9"
IN_A_ROW = 5  # the same command, at most, before it may come to its end
ANEW = 25  # every so manieth process is started by the system, and not forked from one that has imported everything


class Killer:
    """A story whose command is killed again and again."""

    def __init__(self, story: Story, place: Path) -> None:
        self.story, self.ground, self.random = story, Ground(place), Random(story.name)
        self.count = Count(f"{story.name}, killed")
        self.whole = self.ground.begin(story)
        self._seconds: dict[bool, float] = {}  # that a process takes: forked, and started anew

    def kill(self, kills: int) -> Count:
        """As many kills as asked for."""
        rounds, began = 0, time.monotonic()
        while self.count.tried[KILLS] < kills and len(self.count.wrong) <= MOST_WRONG:
            rounds += 1
            try:
                found = self._round(anew=rounds % ANEW == 0 and isinstance(self.story.command, tuple))
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            self.count.wrong += [f"{self.count.name}, round {rounds}: {sentence}" for sentence in found]
        self.count.notes, self.count.seconds = f"{rounds:,} rounds", time.monotonic() - began
        return self.count

    def _round(self, *, anew: bool) -> list[str]:
        """The command is killed a few times in a row, and then comes to its end: what was wrong."""
        act, ended = command_anew(self.story) if anew else self.story.act, None
        if anew not in self._seconds:
            self._seconds[anew] = self._takes(act)
        self.ground.restore()
        for _ in range(self.random.randint(1, IN_A_ROW)):
            child = Child(act, self.ground.root)
            child.ends_within(self.random.uniform(0, self._seconds[anew]))
            child.send(signal.SIGKILL)
            ended = child.ended()
            self.count.tried[KILLS] += ended.code is None
            if ended.code is not None or self.story.state(self.ground.root) == self.whole.new:
                break
        return list(after(self.story, self.ground, self.whole, ended))

    def _takes(self, act: Callable[[], int]) -> float:
        self.ground.restore()
        began = time.monotonic()
        attempt(act, self.ground.root)
        return time.monotonic() - began


def command_anew(story: Story) -> Callable[[], int]:
    """The command in a process that the system starts."""
    assert isinstance(story.command, tuple)
    words = [sys.executable, "-m", "torture.command", *map(str, story.command)]
    tests = str(Path(__file__).parents[1])

    def become_it() -> int:
        os.environ["PYTHONPATH"] = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
        os.execv(words[0], words)

    return become_it
