"""Steps a second of this machine: one run with all threads against as many runs as there are cores, a thread each.

    python tests/bench/side_by_side.py --rounds 5 --seconds 4

The measurement behind `sweep/side_by_side.py`. The ways take turns in every round; the medians are printed.
"""

import argparse
import sys
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from statistics import median

import torch

from episodica.bench.workload import DEFAULT, EngineLoop, Workload, available_kernels
from episodica.engine.device import keep_freed_memory


def work(kernels: str, threads: int, orders: Connection) -> None:
    """Steps for as long as it is told to, and how many a second they were."""
    keep_freed_memory()
    torch.set_num_threads(threads)
    loop = EngineLoop(Workload(how=DEFAULT), kernels)
    loop.step()
    orders.send(None)
    while (seconds := orders.recv()) is not None:
        began, steps = time.perf_counter(), 0
        while (spent := time.perf_counter() - began) < seconds:
            loop.step()
            steps += 1
        orders.send(steps / spent)


def team(kernels: str, processes: int, threads: int) -> list[Connection]:
    context, members = get_context("spawn"), []
    for _ in range(processes):
        ours, theirs = context.Pipe()
        context.Process(target=work, args=(kernels, threads, theirs), daemon=True).start()
        members.append(ours)
    for member in members:
        member.recv()
    return members


def speed(members: list[Connection], seconds: float) -> float:
    for member in members:
        member.send(seconds)
    return sum(member.recv() for member in members)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of each turn")
    told = parser.parse_args()
    cores = torch.get_num_threads()
    for kernels in available_kernels():
        alone, beside = team(kernels, 1, cores), team(kernels, cores, 1)
        turns = [(speed(alone, told.seconds), speed(beside, told.seconds)) for _ in range(told.rounds)]
        one, many, ratio = (median(values) for values in zip(*((a, b, b / a) for a, b in turns), strict=True))
        sys.stdout.write(f"{kernels}: {one:.2f} steps/s one run, {many:.2f} side by side, {ratio:.2f} times\n")
        for member in (*alone, *beside):
            member.send(None)


if __name__ == "__main__":
    main()
