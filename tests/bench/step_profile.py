"""Where a training step's time goes, before and after: `python tests/bench/step_profile.py [--augmented] [--steps N]`.

4-Conv, 32 px, 1-shot, one thread, torch's profiler: a peer's loop, the engine in plain torch, and with its kernels.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from episodica.bench.peer import PeerLoop, loaded
from episodica.bench.workload import DEFAULT, STILL, EngineLoop, Workload
from episodica.engine.device import computing, keep_freed_memory
from episodica.engine.fused import kernels

FIRST, CONVS, REST = "first block", "convolutions of blocks 2 to 4", "images, draws, distances, losses, Adam"
MAPS = "batch-norm, pool and ReLU of blocks 2 to 4"
PARTS = (CONVS, FIRST, MAPS, REST)
OF_MAPS = ("batch_norm", "max_pool2d", "threshold_backward", "clamp_min", "relu")
KERNELS = {
    CONVS: ("winograd", "winograd_turned", "winograd_leaky", "winograd_pool_relu", "winograd_weights"),
    FIRST: ("patch_moments", "conv_pool_relu", "conv_pool_relu_backward"),
    MAPS: ("channel_moments", "norm_pool_relu", "norm_pool_relu_sums", "norm_pool_relu_backward"),
    REST: ("random_views",),
}


def main(steps: int, augmented: bool) -> None:
    keep_freed_memory()
    name_kernels()
    with computing(1):
        workload = Workload(how=DEFAULT if augmented else STILL)
        loops: dict[str, Callable[[], object]] = {
            "peer": PeerLoop(workload, loaded(workload, 0), time.perf_counter).step,
            "plain torch": EngineLoop(workload, "torch").step,
            "fused": EngineLoop(workload, "fused").step,
        }
        spent = {name: shares(step, steps, workload.size) for name, step in loops.items()}
    out = sys.stdout
    out.write("| part, ms of a step | " + " | ".join(spent) + " |\n|---|" + "---:|" * len(spent) + "\n")
    for part in PARTS:
        cells = (f"{found[part]:.0f} ({found[part] / found.total():.0%})" for found in spent.values())
        out.write(f"| {part} | " + " | ".join(cells) + " |\n")
    out.write("| sum | " + " | ".join(f"{found.total():.0f}" for found in spent.values()) + " |\n")


def name_kernels() -> None:
    """Let the profiler see the calls through ctypes."""

    def named(name: str, run: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            with record_function(f"kernel::{name}"):
                return run(*given)

        return call

    for name in (name for group in KERNELS.values() for name in group):
        setattr(kernels, name, named(name, getattr(kernels, name)))


def shares(step: Callable[[], object], steps: int, size: int) -> Counter[str]:
    """Milliseconds of a step in each part."""
    for _ in range(2):
        step()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        for _ in range(steps):
            step()
    found: Counter[str] = Counter()
    for event in seen.events() or []:
        found[part_of(event, size)] += event.self_cpu_time_total / 1e3 / steps
    return found


def part_of(event: FunctionEvent, size: int) -> str:
    for part, names in KERNELS.items():
        if event.name.removeprefix("kernel::") in names:
            return part
    shapes: Any = event.input_shapes or []
    whole = any(
        len(shape) == 4 and shape[-1] == size for shape in shapes
    )  # maps at full resolution are those of the first block
    if "convolution" in event.name:
        return FIRST if whole else CONVS
    if any(name in event.name for name in OF_MAPS):
        return FIRST if whole else MAPS
    return REST


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--augmented", action="store_true")
    given = parser.parse_args()
    main(given.steps, given.augmented)
