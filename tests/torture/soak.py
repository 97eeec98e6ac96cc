"""A server under mixed load, beside a process that changes its model: is every answer that of the state it names, and
do memory and open files stay as they are?"""

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from threading import Event, Thread

from torture.counting import Count
from torture.layer import IN_USE
from torture.small_model import taught
from torture.soak_client import Client

BETWEEN_COMMANDS, BETWEEN_LOOKS = 10.0, 1.0  # seconds
MORE_MEMORY, MORE_FILES = 48 << 20, 4  # that the last third of the time may take beyond the second
LONGEST_START, LONGEST_COMMAND = 120.0, 300.0  # seconds
TESTS = Path(__file__).parents[1]


def soak(place: Path, seconds: float, rate: float) -> Count:
    """At most `rate` requests a second."""
    count, model = Count("serve under load"), taught(place / "soak")
    images = place / "soak" / "images"
    with serving(model) as (process, address), Writer(model, images / "few", count) as writer:
        client, sizes, began = Client(address, model, images, count), Sizes(process.pid), time.monotonic()
        while time.monotonic() < began + seconds and process.poll() is None:
            client.ask()
            sizes.look()
            time.sleep(max(began + client.asked / rate - time.monotonic(), 0))
        if process.poll() is not None:
            count.wrong.append(f"the server ended by itself, with {process.returncode}")
    count.wrong += sizes.wrong()
    count.notes = f"{client.compared:,} answers compared, {writer.changes} changes beside it; {sizes}"
    count.seconds = time.monotonic() - began
    return count


def _command(*words: object) -> list[str]:
    return [sys.executable, "-m", "episodica", *map(str, words)]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}


@contextmanager
def serving(model: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`episodica serve` as people start it, and where it answers."""
    process = subprocess.Popen(
        _command("serve", model, "--port", 0), stdout=subprocess.PIPE, text=True, env=_environment()
    )
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "the server does not say where it answers"
        yield process, found[0]
        process.send_signal(signal.SIGINT)
        process.wait(LONGEST_START)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Writer:
    """Somebody who changes the same model by commands, one after another with a pause."""

    def __init__(self, model: Path, images: Path, count: Count) -> None:
        self.changes, self._count, self._over = 0, count, Event()
        self._words = [("remember", model, "--support", images), ("forget", model, "elk")]
        self._thread = Thread(target=self._work)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(LONGEST_COMMAND)

    def _work(self) -> None:
        for words in cycle(self._words):
            done = subprocess.run(
                _command(*words),
                capture_output=True,
                text=True,
                check=False,
                env=_environment(),
                timeout=LONGEST_COMMAND,
            )
            self.changes += done.returncode == 0
            self._count.tried[f"{words[0]} ({done.returncode})"] += 1
            if done.returncode not in (0, 2, IN_USE) or "Traceback" in done.stderr:
                self._count.wrong.append(f"{words[0]} ended with {done.returncode}: {done.stderr[-600:]}")
            if self._over.wait(BETWEEN_COMMANDS):
                return


class Sizes:
    """What a process has in memory, and how many files it has open, over time."""

    def __init__(self, number: int) -> None:
        self._place, self._looked = Path("/proc", str(number)), 0.0
        self._seen: list[tuple[int, int]] = []  # bytes, files

    def look(self) -> None:
        if time.monotonic() - self._looked < BETWEEN_LOOKS or not self._place.exists():
            return
        self._looked = time.monotonic()
        pages = int((self._place / "statm").read_text().split()[1])
        self._seen.append((pages * os.sysconf("SC_PAGE_SIZE"), len([*(self._place / "fd").iterdir()])))

    def _thirds(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Medians of the second and of the last third; at first a server takes what it needs."""
        third = max(len(self._seen) // 3, 1)
        parts = (self._seen[third : 2 * third] or self._seen, self._seen[-third:])
        middle, last = ([statistics.median(column) for column in zip(*part, strict=True)] for part in parts)
        return (middle[0], middle[1]), (last[0], last[1])

    def wrong(self) -> Iterator[str]:
        (memory, files), (later_memory, later_files) = self._thirds()
        if later_memory > memory + MORE_MEMORY:
            yield f"the server's memory grows: {self}"
        if later_files > files + MORE_FILES:
            yield f"the server's open files become more: {self}"

    def __str__(self) -> str:
        (memory, files), (later_memory, later_files) = self._thirds()
        in_mib = f"{memory / 2**20:.0f}, then {later_memory / 2**20:.0f} MiB"
        return f"memory {in_mib}, open files {files:g}, then {later_files:g}"
