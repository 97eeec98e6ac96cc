"""How far a command is: the stage that it is at (reading, learning, classifying) and how long that still takes.

On a terminal: a bar with the time left. Elsewhere: a plain line now and then, at once where a stage takes long.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

FIRST_LINE, LAST_LINE = 2.0, 60.0  # seconds between two lines: they double from the first to the last

OnStage = Callable[[str, int, int | None], None]


@contextmanager
def stages(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[OnStage]:
    """Call it with the name of the stage, what is done of it, and how much there is where that is known."""
    if console.is_terminal:
        with _bar(console, clock) as on_stage:
            yield on_stage
    else:
        yield _Lines(console, clock)


class Stage:
    """One stage, from the first time that something was heard of it."""

    def __init__(self, name: str, done: int, clock: Callable[[], float]) -> None:
        self.name, self.first, self.done, self.total = name, done, done, None
        self._clock, self._began = clock, clock()

    def reach(self, done: int, total: int | None) -> None:
        self.done, self.total = done, total

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    @property
    def seconds_left(self) -> float | None:
        """At the speed so far; none before anything is done."""
        gained = self.done - self.first
        return (self.total - self.done) * self.seconds / gained if self.total is not None and gained > 0 else None


@contextmanager
def _bar(console: Console, clock: Callable[[], float]) -> Iterator[OnStage]:
    columns = (TextColumn("[bold]{task.description}"), BarColumn(bar_width=30), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        line, stage = bar.add_task("preparing", total=None, left=""), Stage("preparing", 0, clock)

        def on_stage(name: str, done: int, total: int | None) -> None:
            nonlocal stage
            if name != stage.name or done < stage.done:
                stage = Stage(name, done, clock)
            stage.reach(done, total)
            bar.update(line, description=escape(name), completed=done, total=total, left=left(stage.seconds_left))

        yield on_stage


class _Lines:
    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console, self._clock = console, clock
        self._stage: Stage | None = None
        self._next = FIRST_LINE

    def __call__(self, name: str, done: int, total: int | None) -> None:
        if self._stage is None or name != self._stage.name or done < self._stage.done:
            self._stage, self._next = Stage(name, done, self._clock), FIRST_LINE
        stage = self._stage
        stage.reach(done, total)
        if stage.seconds < self._next or total is None or done == total:
            return
        self._next = stage.seconds + min(stage.seconds, LAST_LINE)
        line = f"{name}: {done:,} of {total:,}, {left(stage.seconds_left)}".removesuffix(", ")
        self._console.print(line, soft_wrap=True, markup=False, highlight=False)


def left(seconds: float | None) -> str:
    """`12:07 left`; empty where it is not known."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d} left" if hours else f"{minutes}:{rest:02d} left"
