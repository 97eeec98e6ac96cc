"""Hostile inputs of every kind: nothing comes of them but answers and refusals, within bounded time and memory."""

import time
from collections.abc import Iterator
from itertools import count as counted
from pathlib import Path

from torture.counting import MOST_WRONG, Count
from torture.inputs.corpus import once_broke
from torture.inputs.kind import Kind
from torture.inputs.kinds import all_kinds
from torture.inputs.trial import Outcome, drawn, given_ones, most, tried
from torture.small_model import taught

BATCH = 250  # inputs in one process
MOST_BATCHES = 100_000  # of one seed


def throw(inputs: int, place: Path, seed: int, keep: Path | None = None) -> Iterator[Count]:
    """So many inputs over all kinds; first those that once broke something."""
    kinds = all_kinds(taught(place / "small"))
    for kind in kinds:
        drawn(kind, 0, 1)(lambda data: None)  # what a process prepares once is not left to each child
    yield _again(kinds, place)
    for kind in kinds:
        yield _thrown(kind, -(-inputs // len(kinds)), place, seed, keep)


def _thrown(kind: Kind, inputs: int, place: Path, seed: int, keep: Path | None) -> Count:
    began, outcomes = time.monotonic(), []
    for batch in counted(MOST_BATCHES * seed + 1):
        size = min(BATCH, inputs - len(outcomes))
        wrong = sum(not one.right for one in outcomes)
        if size <= 0 or wrong > MOST_WRONG:
            break
        found = tried(kind, drawn(kind, batch, size), place)
        outcomes += found
        for one in found:
            if keep and not one.right:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{kind.name}-{batch}-{one.number}").write_bytes(one.data)
    return _count(f"inputs: {kind.name}", outcomes, began)


def _again(kinds: list[Kind], place: Path) -> Count:
    began, outcomes = time.monotonic(), []
    for kind, inputs in once_broke(kinds):
        if inputs:
            outcomes += tried(kind, given_ones(inputs), place)
    return _count("inputs that once broke something", outcomes, began)


def _count(name: str, outcomes: list[Outcome], began: float) -> Count:
    count = Count(name, notes=most(outcomes), seconds=time.monotonic() - began)
    count.tried.update(one.what for one in outcomes if one.right)
    for one in outcomes:
        if not one.right:
            count.tried["neither"] += 1
            count.wrong.append(f"{name}, {one.number}, {one.data[:80]!r} ({len(one.data):,} bytes): {one.what}")
    return count
