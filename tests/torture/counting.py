"""What was tried, what must not have happened, and how long it may go on."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

LEAST = 7  # trials of a story, be the time over or not: else it would pass untried
MOST_WRONG = 20  # of one story or kind of input: then it has failed, and more would say no more


@dataclass
class Count:
    """Of one story, or of one kind of input."""

    name: str
    tried: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0
    notes: str = ""  # what else was measured

    def what(self) -> str:
        return ", ".join(f"{what} {many:,}" for what, many in self.tried.items())

    def line(self) -> str:
        notes = f"; {self.notes}" if self.notes else ""
        return f"{self.name}: {self.what()}{notes}; {len(self.wrong)} wrong; {self.seconds:.0f} s"


def table(counts: Iterable[Count]) -> str:
    """In Markdown, for the docs."""
    counts = list(counts)
    tried = sum((count.tried for count in counts), Counter[str]())
    total = Count("**in all**", tried, [sentence for count in counts for sentence in count.wrong])
    rows = [f"| {one.name} | {one.what()} | {one.tried.total():,} | {len(one.wrong)} |" for one in (*counts, total)]
    return "\n".join(["| what | tried | in all | wrong |", "|---|---|---|---|", *rows])


def evenly(until: float | None, left: int) -> float | None:
    """Until when the first of those that are left may take."""
    if until is None:
        return None
    now = time.monotonic()
    return now + (until - now) / left
