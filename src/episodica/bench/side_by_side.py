"""One run with all threads against as many runs as there are cores, a thread each: what a grid chooses between."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch

from episodica.bench.section import Section
from episodica.bench.timing import Case, Effort, interleaved
from episodica.bench.workload import DEFAULT, EngineLoop, Workload, available_kernels
from episodica.engine.device import computing, keep_freed_memory


def side_by_side(effort: Effort) -> Iterator[Section]:
    """Always by the wall clock: what is compared is what the machine gets done."""
    cores, steps = torch.get_num_threads(), effort.steps
    for kernels in available_kernels():
        with _team(kernels, 1, cores) as alone, _team(kernels, cores, 1) as beside:
            one, many = f"one run, threads: {cores}", f"runs side by side, one thread each: {cores}"
            a_step = 1 / (cores * steps)  # both take as many steps in all
            cases = [
                Case(one, partial(_work, alone, cores * steps), stands_for=a_step),
                Case(many, partial(_work, beside, steps), stands_for=a_step),
            ]
            rows = interleaved(cases, replace(effort, steps=1, clock=time.perf_counter), reference=one, warm=0)
        rates = ", ".join(f"{1e3 / row.ms:.1f} ({row.name})" for row in rows)
        title = f"Augmented steps of ERD, 4-Conv, 32 px, {kernels}, the machine's time for one"
        yield Section(title, rows, [f"steps a second: {rates}"])


@contextmanager
def _team(kernels: str, processes: int, threads: int) -> Iterator[list[Connection]]:
    """Processes that have taken their first step, and end with the block."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(processes)]
    members = [context.Process(target=_take_steps, args=(kernels, threads, theirs)) for _, theirs in pipes]
    ours = [pipe for pipe, _ in pipes]
    for member in members:
        member.start()
    try:
        _work(ours, 1)
        yield ours
    finally:
        for member in members:
            member.kill()
            member.join()


def _work(team: list[Connection], steps: int) -> None:
    """Every member takes so many steps, at the same time."""
    for member in team:
        member.send(steps)
    for member in team:
        member.recv()


def _take_steps(kernels: str, threads: int, orders: Connection) -> None:
    keep_freed_memory()
    with computing(threads):
        loop = EngineLoop(Workload(how=DEFAULT), kernels)
        while True:
            for _ in range(orders.recv()):
                loop.step()
            orders.send(None)
