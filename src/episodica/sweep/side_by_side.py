"""Several runs at once, a process with one thread each, where that is faster than one after another with all threads.

Plain torch wastes threads on small networks, so that two runs side by side are about a quarter faster than one after
the other; the fused kernels keep all threads busy, and gain nothing.
"""

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
from episodica.engine.fused.accelerate import accelerate
from episodica.engine.problem import new_learner
from episodica.engine.trainer import Tell
from episodica.errors import Interrupted
from episodica.sweep.executor import Executor, Outcome, Stop, Watcher
from episodica.sweep.in_turn import InTurn

SECONDS_BETWEEN_LOOKS = 0.2  # at whether the user wants to stop
CPU = torch.device("cpu")


def local(configs: Sequence[RunConfig], cores: int) -> Executor:
    """The faster of the ways to use this machine."""
    processes = processes_for(configs, cores)
    return SideBySide(processes) if processes > 1 else InTurn()


def processes_for(configs: Sequence[RunConfig], cores: int) -> int:
    """How many runs to work on at a time: one, with all threads, or as many as there are cores, with one thread each.

    All runs of the grid count, finished or not: the same command gives every run the same threads, hence the same bits.
    """
    one_after_another = (
        len(configs) < cores
        or any(config.threads is not None for config in configs)
        or any(pick_device(config.device).type != "cpu" for config in configs)
        or any(_fused(config) for config in configs)
    )
    return 1 if one_after_another else cores


def _fused(config: RunConfig) -> bool:
    if config.kernels == "torch":
        return False
    return accelerate(new_learner(config, CPU), "auto", lambda text: None) == "fused"


class Worker(NamedTuple):
    config: RunConfig
    process: BaseProcess
    tell: Tell


@dataclass(frozen=True)
class SideBySide:
    """So many runs at a time. A process that dies takes no other run with it."""

    processes: int

    def run(self, configs: Sequence[RunConfig], out: Path, watcher: Watcher, stop: Stop) -> Outcome:
        context = get_context("spawn")
        asked, waiting, outcome = context.Event(), list(configs), Outcome()
        working: dict[Connection, Worker] = {}
        try:
            while working or (waiting and not stop()):
                while waiting and len(working) < self.processes and not stop():
                    config = waiting.pop(0)
                    ours, theirs = context.Pipe(duplex=False)
                    process = context.Process(target=_work, args=(config.tree(), out, theirs, asked))
                    process.start()
                    theirs.close()
                    working[ours] = Worker(config, process, watcher(config))
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
    except EOFError:
        worker.process.join()
        error = RuntimeError(f"its process ended with code {worker.process.exitcode}; run the same command again")
        outcome.note(worker.config, error)
        worker.tell({"event": "failed", "run": worker.config.run_id})
        return True
    if isinstance(said, Mapping):
        worker.tell(said)
        return False
    outcome.note(worker.config, said)
    return True


def _work(tree: dict[str, Any], out: Path, connection: Connection, asked: Event) -> None:
    """The whole life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which asks to stop
    keep_freed_memory()
    torch.set_num_threads(1)

    def tell(event: Mapping[str, Any]) -> None:
        try:
            connection.send(dict(event))
        except OSError:  # nobody listens any more
            raise Interrupted from None

    outcome = InTurn().run([resolve(tree)], out, lambda config: tell, asked.is_set)
    with suppress(OSError):
        connection.send(outcome.verdict())
