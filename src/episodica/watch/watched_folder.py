"""All runs below a folder, found and followed."""

import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from episodica.config import NOT_IN_THE_NUMBERS
from episodica.config.flat import flatten
from episodica.files.door import Folder, Refused
from episodica.files.lock import LOCK
from episodica.records.run import CONFIG, EVENTS
from episodica.records.tail import Stamp
from episodica.watch.watched_run import WatchedRun

log = logging.getLogger(__name__)
T = TypeVar("T")
DEPTH = 5  # folders below the one that is watched
BETWEEN_SEARCHES = 3.0  # seconds; looking into known runs is cheaper than searching for new ones
READING, PLANNING = 0.4, 0.1  # seconds spent on new runs and on schedules in one look, so that every look is quick


def run_folders(root: Folder, depth: int = DEPTH) -> Iterator[Folder]:
    """Folders with a config.yaml. Links are not followed: what lies elsewhere is not below `root`."""
    try:
        entries = root.entries()
    except (OSError, Refused):
        return
    if any(entry.name == CONFIG for entry in entries):
        yield root
        return
    for entry in entries:
        if depth and not entry.name.startswith(".") and entry.is_folder:
            yield from run_folders(root / entry.name, depth - 1)


def held_locks(table: Path = Path("/proc/locks")) -> frozenset[tuple[int, int]]:
    """(device, inode) of every file that a process of this machine has locked, as Linux lists them.

    Trying the lock would hold it for a moment, in which a run that starts would find its folder in use.
    """
    try:
        rows = [line.split() for line in table.read_text().splitlines()]
    except OSError:
        return frozenset()
    held = set()
    for row in rows:
        if len(row) > 5 and row[1] == "FLOCK" and row[5].count(":") == 2:
            major, minor, inode = row[5].split(":")
            held.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
    return frozenset(held)


def is_locked(folder: Folder, held: frozenset[tuple[int, int]]) -> bool:
    if not held:
        return False
    try:
        lock = folder.status(LOCK)
    except (OSError, Refused):
        return False
    return lock is not None and (lock.st_dev, lock.st_ino) in held


def alone(run: WatchedRun, work: Callable[[WatchedRun], T]) -> T:
    """What `work` makes of a run. Where it fails, whatever the reason, this run is given up and no other."""
    try:
        return work(run)
    except Exception as error:
        log.warning("%r cannot be shown: %r", run.name, error)
        run.give_up(error)
        return work(run)


def set_apart(runs: Mapping[str, WatchedRun]) -> dict[str, list[str]]:
    """`key=value` for what differs between runs of the same method on the same data set in the same place.

    A field that only some of them have, which other versions wrote, does not set runs apart.
    """
    peers: dict[tuple[str, ...], list[str]] = defaultdict(list)
    flat = {key: flatten(run.config) for key, run in runs.items()}
    for key, own in flat.items():
        peers[str(runs[key].folder.path.parent), str(own.get("method.name")), str(own.get("data.name"))].append(key)
    apart = {}
    for group in peers.values():
        values: dict[str, set[str]] = defaultdict(set)
        for key in group:
            for path, value in flat[key].items():
                values[path].add(repr(value))
        varied = [path for path, found in values.items() if len(found) > 1 and path not in NOT_IN_THE_NUMBERS]
        for key in group:
            apart[key] = [f"{path}={flat[key][path]}" for path in varied if path in flat[key]]
    return apart


def _touched(folder: Folder) -> int:
    stamp = Stamp.of(folder, EVENTS)
    return stamp.changed if stamp else 0


@dataclass(frozen=True)
class Change:
    """What is new since a version."""

    version: int
    runs: list[dict[str, Any]]
    gone: list[str]


class WatchedFolder:
    """Runs by a short key that is no path, so that nothing that a client sends is ever looked up on the disk."""

    def __init__(self, root: Path, now: Callable[[], float] = time.monotonic) -> None:
        self.root, self._now = root, now
        self.version = 0
        self._runs: dict[str, WatchedRun] = {}
        self._versions: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._apart: dict[str, list[str]] = {}
        self._summaries: dict[str, dict[str, Any]] = {}
        self._new: dict[str, WatchedRun] = {}  # found, but not yet read
        self._searched = float("-inf")

    @property
    def behind(self) -> bool:
        """Whether there are runs that no look had time for."""
        return bool(self._new)

    def refresh(self) -> None:
        """Look at every run once more, and at as many new ones as there is time for, the liveliest first."""
        now, wall = self._now(), time.time()
        self.version += 1
        if now - self._searched >= BETWEEN_SEARCHES:
            self._search()
            self._searched = now
        held = held_locks()

        def look(run: WatchedRun) -> bool:
            return run.refresh(now, wall, is_locked(run.folder, held))

        changed = {key for key, run in self._runs.items() if alone(run, look)}
        while self._new and self._now() < now + READING:
            key, run = self._new.popitem()
            alone(run, look)
            self._runs[key] = run
            changed.add(key)
        changed |= set(self._plan())
        changed |= set(self._compare(changed))
        for key in changed:
            summary = alone(self._runs[key], WatchedRun.summary)
            self._summaries[key] = {"id": key, "apart": self._apart.get(key, []), **summary}
            self._versions[key] = self.version

    def since(self, version: int) -> Change:
        runs = [self._summaries[key] for key, changed in self._versions.items() if changed > version]
        return Change(self.version, runs, [key for key, left in self._gone.items() if left > version])

    def detail(self, key: str) -> dict[str, Any] | None:
        if key not in self._summaries:
            return None
        return {**self._summaries[key], **alone(self._runs[key], WatchedRun.detail), "version": self._versions[key]}

    def _search(self) -> None:
        found = {}
        for folder in run_folders(Folder(self.root)):
            name = "/".join(folder.inner) or self.root.resolve().name
            found[blake2b(os.fsencode(name), digest_size=6).hexdigest()] = (folder, name)
        for key in self._runs.keys() - found.keys():
            del self._runs[key]
            for known in (self._versions, self._summaries, self._apart):
                known.pop(key, None)
            self._gone[key] = self.version
        new = sorted(found.keys() - self._runs.keys(), key=lambda key: _touched(found[key][0]))
        self._new = {key: WatchedRun(*found[key]) for key in new}
        for key in new:
            self._gone.pop(key, None)

    def _plan(self) -> Iterator[str]:
        until = self._now() + PLANNING
        for key, run in self._runs.items():
            if run.needs_plan:
                alone(run, WatchedRun.plan)
                yield key
                if self._now() > until:
                    return

    def _compare(self, changed: Iterable[str]) -> Iterator[str]:
        """Runs whose distinguishing settings are new, because a config among their peers is."""
        if not set(changed) - self._summaries.keys() and len(self._runs) == len(self._apart):
            return
        before, self._apart = self._apart, set_apart(self._runs)
        yield from (key for key, apart in self._apart.items() if before.get(key) != apart)
