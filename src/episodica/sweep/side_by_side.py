"""Several runs at once, a process each, where that is faster than one after another with all threads.

No step keeps all threads busy all the time: two runs with a thread each make 1.2 (plain torch) to 1.3 (fused kernels)
times the steps of one run with two (tests/bench/side_by_side.py).
"""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import torch

from episodica.config import RunConfig, resolve
from episodica.engine.device import keep_freed_memory, pick_device
from episodica.engine.trainer import OnEvent
from episodica.errors import Interrupted
from episodica.sweep.executor import Executor, OnEventFor, Outcome, Stop
from episodica.sweep.in_turn import InTurn

SECONDS_BETWEEN_LOOKS = 0.2  # at whether the user wants to stop
MEMORY_OF_A_RUN = 4 * 2**30  # bytes: a 4-Conv on 32 px takes a fifth of it, larger networks and images more


def local(configs: Sequence[RunConfig], cores: int) -> Executor:
    """The fastest way to use this machine."""
    processes = processes_for(configs, cores, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return SideBySide(processes, threads=cores // processes) if processes > 1 else InTurn()


def processes_for(configs: Sequence[RunConfig], cores: int, memory: int) -> int:
    """How many runs to work on at a time, so that all cores are in use and none twice.

    All runs of the grid count, finished or not: the same command gives every run the same threads, hence the same bits.
    """
    if any(pick_device(config.device).type != "cpu" for config in configs):
        return 1
    threads = max(config.threads or 1 for config in configs)
    return max(1, min(len(configs), cores // threads, memory // MEMORY_OF_A_RUN))


class Worker(NamedTuple):
    config: RunConfig
    process: BaseProcess
    on_event: OnEvent


@dataclass(frozen=True)
class SideBySide:
    """So many runs at a time, with so many threads each, unless a run says how many it wants. A process that dies takes
    no other run with it."""

    processes: int
    threads: int = 1

    def run(self, configs: Sequence[RunConfig], out: Path, on_event_for: OnEventFor, stop: Stop) -> Outcome:
        context = get_context("spawn")
        asked, waiting, outcome = context.Event(), list(configs), Outcome()
        working: dict[Connection, Worker] = {}
        try:
            while working or (waiting and not stop()):
                while waiting and len(working) < self.processes and not stop():
                    config = waiting.pop(0)
                    ours, theirs = context.Pipe(duplex=False)
                    process = context.Process(target=_work, args=(config.tree(), out, self.threads, theirs, asked))
                    process.start()
                    theirs.close()
                    working[ours] = Worker(config, process, on_event_for(config))
                for ready in wait(list(working), SECONDS_BETWEEN_LOOKS):
                    assert isinstance(ready, Connection)
                    if _hear(ready, working[ready], outcome):
                        working.pop(ready).process.join()
                if stop():
                    asked.set()
        finally:
            for worker in working.values():
                worker.process.kill()
                worker.process.join()
        outcome.interrupted |= bool(waiting)
        return outcome.in_order_of(configs)


def _hear(connection: Connection, worker: Worker, outcome: Outcome) -> bool:
    """Pass on an event, or note the end of the run: then it is true."""
    try:
        said = connection.recv()
    except (EOFError, OSError):  # between two messages, or within one
        worker.process.join()
        error = RuntimeError(f"its process ended with code {worker.process.exitcode}; run the same command again")
        outcome.note(worker.config, error)
        worker.on_event({"event": "failed", "run": worker.config.run_id})
        return True
    if isinstance(said, Mapping):
        worker.on_event(said)
        return False
    outcome.note(worker.config, said)
    return True


def _work(tree: dict[str, Any], out: Path, threads: int, connection: Connection, asked: Event) -> None:
    """The whole life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which asks to stop
    keep_freed_memory()
    torch.set_num_threads(threads)

    def on_event(event: Mapping[str, Any]) -> None:
        try:
            connection.send(dict(event))
        except OSError:  # the caller has stopped listening
            raise Interrupted from None

    outcome = InTurn().run([resolve(tree)], out, lambda config: on_event, asked.is_set)
    with suppress(OSError):
        connection.send(outcome.verdict())
