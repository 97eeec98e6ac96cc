"""Gathering steps from a store that is larger than the memory the process is allowed.

    python tests/bench/large_store.py --gigabytes 4 --allowed 1

Rows have the size of Tiered-ImageNet at 84 px. A child process under a memory limit (a control group, which needs root;
without it `limit_gb` is null) maps the file and gathers the 160 random rows of an ERD step, again and again. Prints one
JSON object: what a step's gather takes, the child's own memory, the peak of its group, and the size of the store.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from episodica.data.store import ImageStore
from episodica.rng import generator

SIDE, ROWS_OF_A_STEP = 84, 160
GROUPS = (  # folder, limit and peak in the two versions of control groups
    (Path("/sys/fs/cgroup/memory/episodica-bench"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    (Path("/sys/fs/cgroup/episodica-bench"), "memory.max", "memory.peak"),
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--gigabytes", type=float, default=4.0)
    options.add_argument("--allowed", type=float, default=1.0, help="gigabytes of memory for the child")
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--gather", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.gather is not None:
        return gather(asked.gather, asked.steps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        write(path, asked.gigabytes)
        group, peak_file = limited_group(asked.allowed)
        command = [sys.executable, __file__, "--gather", str(path), "--steps", str(asked.steps)]
        enter = f"echo $$ > {group}/cgroup.procs && " if group else ""
        child = subprocess.run(
            ["sh", "-c", enter + 'exec "$@"', "sh", *command], check=True, capture_output=True, text=True
        )
        peak = int((group / peak_file).read_text()) / 1e9 if group else None
        if group:
            group.rmdir()
    report = json.loads(child.stdout) | {"limit_gb": asked.allowed if group else None, "peak_of_group_gb": peak}
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return None


def write(path: Path, gigabytes: float) -> None:
    rows = int(gigabytes * 1e9 / (SIDE * SIDE * 3))
    images = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(rows, SIDE, SIDE, 3))
    noise = np.random.default_rng(0).integers(0, 256, (1000, SIDE, SIDE, 3), dtype=np.uint8)
    for start in range(0, rows, 1000):
        images[start : start + 1000] = noise[: min(1000, rows - start)]
    images.flush()
    with path.open(
        "rb"
    ) as file:  # the child must fetch its rows from the disk, not from what writing has left in memory
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def limited_group(gigabytes: float) -> tuple[Path | None, str]:
    for group, limit_file, peak_file in GROUPS:
        if group.parent.joinpath("cgroup.procs").exists():
            try:
                group.mkdir(exist_ok=True)
                (group / limit_file).write_text(str(int(gigabytes * 1e9)))
            except OSError:
                continue
            return group, peak_file
    return None, ""


def gather(path: Path, steps: int) -> None:
    store = ImageStore(np.load(path, mmap_mode="r", allow_pickle=False))
    g, seconds = generator("large store"), []
    for _ in range(steps):
        rows = torch.randint(len(store), (ROWS_OF_A_STEP,), generator=g)
        started = time.perf_counter()
        store.read(rows)
        seconds.append(time.perf_counter() - started)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    report = {
        "store_gb": round(path.stat().st_size / 1e9, 2),
        "rows": len(store),
        "ms_median": round(1e3 * sorted(seconds)[len(seconds) // 2], 2),
        "ms_worst": round(1e3 * max(seconds), 2),
        "peak_anonymous_gb": round(int(status["RssAnon"].split()[0]) / 1e6, 3),
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
