"""A training step of ERD on 4-Conv (two sub-episodes, 5-way, 1-shot: 160 images) by plain torch and by fused kernels.

    python tests/bench/step.py --threads 1

Interleaved, because the speed of a shared machine drifts: each round times both, and the ratio is taken within it.
Prints one JSON object a case: median milliseconds of a step and the median, lowest and highest ratio of the rounds.
Where others use the machine, `--clock cpu` with one thread counts only the time that the process had.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch

from episodica.config import AugmentConfig, RunConfig, resolve
from episodica.data.store import ImageStore
from episodica.engine.access import Access
from episodica.engine.device import keep_freed_memory
from episodica.engine.forward import Forward, frozen
from episodica.engine.fused.accelerate import accelerate
from episodica.engine.problem import new_learner
from episodica.methods.erd import ERD
from episodica.rng import StepGenerators, generator
from episodica.types import Pool, Pools, Shape

CLASSES, PER_CLASS = 20, 100
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
STILL = AugmentConfig(crop="none", flip=False, brightness=0, contrast=0, colour=0)


def training(config: RunConfig, kernels: str, size: int, how: AugmentConfig) -> Callable[[], None]:
    """A function that makes the next step of the second session."""
    cpu = torch.device("cpu")
    shape = (CLASSES * PER_CLASS, size, size, 3)
    store = ImageStore(torch.randint(256, shape, dtype=torch.uint8, generator=generator("bench")).numpy())
    rows = torch.arange(CLASSES * PER_CLASS).view(CLASSES, PER_CLASS)
    half = CLASSES // 2
    current, past = ({c: rows[c] for c in classes} for classes in (range(half), range(half, CLASSES)))
    pools = Pools(Pool.of(current), Pool.of(past))
    learner = new_learner(config, cpu)
    assert accelerate(learner, kernels, lambda text: None) == kernels
    teacher, method = frozen(learner), ERD()
    access = Access(store, how, cpu, pools, partial(generator, 0), learner, teacher, lambda text: None)
    forward = Forward(access, learner, teacher, split_bn=False, cache=not how.random)
    optimizer = method.optimizer(list(learner.parameters()), config.train)
    done = 0

    def step() -> None:
        nonlocal done
        rng = StepGenerators(0, 1, done, 10**6)
        terms = method.loss(forward(method.draw(pools, Shape(5, 1, 15), rng), rng))
        optimizer.zero_grad()
        torch.stack(list(terms.values())).sum().backward()
        optimizer.step()
        done += 1

    return step


def seconds(step: Callable[[], None], steps: int, clock: str) -> float:
    now = CLOCKS[clock]
    started = now()
    for _ in range(steps):
        step()
    return (now() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    keep_freed_memory()
    for how in (STILL, AugmentConfig()):
        both = {kernels: training(resolve({}), kernels, asked.size, how) for kernels in ("torch", "fused")}
        for step in both.values():
            seconds(step, 2, asked.clock)
        rounds = [
            {name: seconds(step, asked.steps, asked.clock) for name, step in both.items()} for _ in range(asked.rounds)
        ]
        ratios = [each["torch"] / each["fused"] for each in rounds]
        found = {
            "threads": asked.threads,
            "clock": asked.clock,
            "size": asked.size,
            "augmented": how.random,
            "ms": {name: round(1e3 * median(each[name] for each in rounds), 1) for name in both},
            "ratio": [round(ratio, 2) for ratio in (median(ratios), min(ratios), max(ratios))],
        }
        print(json.dumps(found), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
