"""Gathering the steps of an ERD session from a store on disk that is larger than the memory the process is allowed.

    python tests/bench/large_store.py --gigabytes 2 --allowed 0.5

Rows have the size of Tiered-ImageNet's at 84 px and lie class by class, as in the cache. A child process, whose own
memory the system limits (RLIMIT_DATA), maps the file and gathers 160 rows a step. Prints one JSON object. For rows of
the whole store, and for those of a task (28 classes of 1,281 images; half of a step's rows come from 5 of them, half
are exemplars from all over the store):

- `cold`: the page cache is emptied before each step, so every byte comes from the disk; `disk_mb` is what the system
  counted, `wanted_mb` what the rows hold, and `resident_share` what the page cache held at the start, which must be 0.
- `kept`: pages may stay, as on a machine with memory to spare.

`own_mb` is the most memory that the process had of its own, `mapped_mb` the most pages of files, which the system takes
back when it needs them. `network_ms` is a forward and backward pass of the 4-Conv on the images of a step, without the
limit: the least that a training step takes beside the gather.

The limit is on the process's own memory. One on the page cache too comes from the outside, for example by
`systemd-run --scope --property MemoryMax=500M`; the cold steps above are what such a limit can lead to at worst.
"""

import argparse
import ctypes
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor

from episodica import Conv4
from episodica.data.store import ImageStore
from episodica.rng import generator, seeded

SIDE, ROW_BYTES, ROWS_OF_A_STEP = 84, 84 * 84 * 3, 160
CLASS_SIZE, CLASSES_OF_A_TASK, WAY = 1281, 28, 5


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gigabytes", type=float, default=2.0, help="size of the store")
    options.add_argument("--allowed", type=float, default=0.5, help="gigabytes of its own that the child may have")
    options.add_argument("--steps", type=int, default=50)
    options.add_argument("--folder", type=Path, help="on the disk to be measured; default: the temporary folder")
    options.add_argument("--gather", type=Path, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.gather is not None:
        report = {"allowed_gb": asked.allowed, **measure(asked.gather, asked.steps, int(asked.allowed * 1e9))}
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = Path(folder) / "images.npy"
        write(path, int(asked.gigabytes * 1e9 / ROW_BYTES))
        same = [sys.executable, __file__, "--allowed", str(asked.allowed), "--steps", str(asked.steps)]
        sys.exit(subprocess.run([*same, "--gather", str(path)], check=False).returncode)


def write(path: Path, rows: int) -> None:
    noise = np.random.default_rng(0).bytes(1000 * ROW_BYTES)
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (rows, SIDE, SIDE, 3)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, rows, 1000):
            file.write(noise[: (rows - start) * ROW_BYTES])
        file.flush()
        os.fsync(file.fileno())  # only what is on the disk can leave the page cache


def measure(path: Path, steps: int, allowed: int) -> dict[str, object]:
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, resource.RLIM_INFINITY))
    images: np.memmap = np.load(path, mmap_mode="r", allow_pickle=False)
    store, g = ImageStore(images), generator("large store")
    draws = {"whole store": lambda: anywhere(len(store), ROWS_OF_A_STEP, g), "task": task_rows(len(store), g)}
    report: dict[str, object] = {"store_gb": round(path.stat().st_size / 1e9, 2), "rows": len(store)}
    for name, draw in draws.items():
        report[f"{name}, cold"] = timed(store, draw, steps, lambda: empty_page_cache(images, path))
        report[f"{name}, kept"] = timed(store, draw, steps, lambda: 0.0)
    batch = store.read(draws["task"]())
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return report | {"network_ms": network_ms(batch)}


def anywhere(rows: int, count: int, g: torch.Generator) -> Tensor:
    return torch.randint(rows, (count,), generator=g)


def task_rows(rows: int, g: torch.Generator) -> Callable[[], Tensor]:
    classes = torch.randperm(rows // CLASS_SIZE, generator=g)[:CLASSES_OF_A_TASK]

    def draw() -> Tensor:
        chosen = classes[torch.randperm(len(classes), generator=g)[:WAY]]
        current = chosen.repeat_interleave(ROWS_OF_A_STEP // 2 // WAY) * CLASS_SIZE
        current += anywhere(CLASS_SIZE, len(current), g)
        return torch.cat([current, anywhere(rows, ROWS_OF_A_STEP - len(current), g)])

    return draw


def timed(store: ImageStore, draw: Callable[[], Tensor], steps: int, prepare: Callable[[], float]) -> dict[str, float]:
    """`prepare` gives the share of the store that the page cache holds when the step begins."""
    seconds, from_disk, resident, own, mapped = [], [], [], [], []
    for _ in range(steps):
        rows = draw()
        resident.append(prepare())
        before, started = read_bytes(), time.perf_counter()
        store.read(rows)
        seconds.append(time.perf_counter() - started)
        from_disk.append(read_bytes() - before)
        own.append(megabytes("RssAnon"))
        mapped.append(megabytes("RssFile"))
    return {
        "ms_median": round(1e3 * median(seconds), 2),
        "ms_worst": round(1e3 * max(seconds), 2),
        "disk_mb": round(median(from_disk) / 1e6, 2),
        "wanted_mb": round(ROWS_OF_A_STEP * ROW_BYTES / 1e6, 2),
        "resident_share": max(resident),
        "own_mb": max(own),
        "mapped_mb": max(mapped),
    }


def empty_page_cache(images: np.memmap, path: Path) -> float:
    """Give back the pages of the map first: those that a process has mapped stay. The share that did stay."""
    assert isinstance(images.base, mmap.mmap)
    images.base.madvise(mmap.MADV_DONTNEED)
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    pages = np.zeros(-(-len(images.base) // mmap.PAGESIZE), np.uint8)
    address = images.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    asked = ctypes.CDLL(None, use_errno=True).mincore(
        ctypes.c_void_p(address), ctypes.c_size_t(len(images.base)), ctypes.c_void_p(pages.ctypes.data)
    )
    assert asked == 0, os.strerror(ctypes.get_errno())
    return float((pages & 1).mean())


def read_bytes() -> int:
    """Bytes that the system has fetched from the disk for this process."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def megabytes(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(round(int(line.split()[1]) / 1e3, 1) for line in lines if line.startswith(f"{key}:"))


def network_ms(batch: Tensor, passes: int = 5) -> float:
    with seeded("large store"):
        network = Conv4()
    images = batch.permute(0, 3, 1, 2).float() / 255
    seconds = []
    for _ in range(passes):
        started = time.perf_counter()
        network(images).square().mean().backward()
        seconds.append(time.perf_counter() - started)
    return round(1e3 * median(seconds), 1)


if __name__ == "__main__":
    main()
