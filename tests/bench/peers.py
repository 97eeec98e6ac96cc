"""Few-shot packages on the step of fine-tuning, each in an environment of its own, beside ours.

    python tests/bench/peers.py --python PATH_TO_ANOTHER_PYTHON [--threads 1 --clock cpu]

None of them has incremental distillation, so what is compared is a step of FT: ProtoNet with 4-Conv on 80 images of
32 px, 5-way, 1-shot, 15 queries, not augmented, Adam. The other environment needs torch and the packages; one that is
not there, or does not work, has its reason instead of a row. Contenders take turns in every round; medians are printed.
"""

import argparse
import json
import os
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import torch

from episodica.bench.section import Section
from episodica.bench.show import markdown
from episodica.bench.timing import CLOCKS, Row
from episodica.bench.workload import CLASSES, PER_CLASS, EngineLoop, Workload, available_kernels
from episodica.engine.device import computing, keep_freed_memory
from episodica.methods.ft import FT

CHILD = Path(__file__).with_name("peer_packages.py")
KEEP_FREED_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}  # as we do
PACKAGES = ("easyfsl", "torchmeta", "learn2learn")


class FineTuning(Workload):
    @cached_property
    def method(self) -> FT:  # type: ignore[override]
        return FT()


class Ours:
    def __init__(self, kernels: str) -> None:
        self.name, self._loop = f"episodica, {kernels}", EngineLoop(FineTuning(), kernels)

    def seconds(self, steps: int, clock: str) -> float:
        self._loop.step()
        now = CLOCKS[clock]  # type: ignore[index]
        began = now()
        for _ in range(steps):
            self._loop.step()
        return (now() - began) / steps


class Peer:
    """A package in a process of the other environment."""

    def __init__(self, python: str, package: str, images: Path, threads: int) -> None:
        command = [python, str(CHILD), package, str(images), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **KEEP_FREED_MEMORY}
        )
        self.said = self._line()
        self.name = f"{package} {self.said.get('version', '')}".strip()

    def seconds(self, steps: int, clock: str) -> float:
        assert self._process.stdin is not None
        for number in (1, steps):  # the first warms up
            self._process.stdin.write(f"{number}\n")
            self._process.stdin.flush()
            found = self._line()[clock]
        return found

    def _line(self) -> dict:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline() or '{"error": "it ended without a word"}')

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="of the environment with the packages")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu, with one thread: where others work")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="of a turn")
    told = parser.parse_args()
    keep_freed_memory()
    with TemporaryDirectory(prefix="episodica-") as place, computing(told.threads):
        file, pixels = Path(place, "images.npy"), Workload().store.read(torch.arange(CLASSES * PER_CLASS)).numpy()
        np.save(file, pixels.reshape(CLASSES, PER_CLASS, *pixels.shape[1:]))
        peers = [Peer(told.python, package, file, told.threads) for package in PACKAGES]
        remarks = [f"{peer.name}: {said}" for peer in peers if (said := peer.said.get("error") or peer.said["remark"])]
        contenders = [*(p for p in peers if "error" not in p.said), *map(Ours, available_kernels())]
        rounds = [{one.name: one.seconds(told.steps, told.clock) for one in contenders} for _ in range(told.rounds)]
        for peer in peers:
            peer.end()
    rows = [_row(one.name, contenders[0].name, rounds) for one in contenders]
    sys.stdout.write(markdown(Section("Step of FT, 1-shot, 32 px", rows, remarks)))


def _row(name: str, reference: str, rounds: list[dict[str, float]]) -> Row:
    seconds = [each[name] for each in rounds]
    ratio = median(each[reference] / each[name] for each in rounds)
    return Row(name, 1e3 * median(seconds), ratio, None, [1e3 * value for value in seconds])


if __name__ == "__main__":
    main()
