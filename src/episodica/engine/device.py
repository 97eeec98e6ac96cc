"""The one place that knows what computes: device, threads, allocator, and how that is recorded."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from episodica.engine.fused import build
from episodica.errors import InputError
from episodica.lazy_torch import torch

CUDA_FILES = ("nvidia*", "nvhost*", "dxg", "kfd")  # in /dev: NVIDIA's driver, on Jetson, in WSL; AMD's driver


def check_device(name: str, precision: str) -> None:
    """Refuse what needs CUDA where there can be none, without loading torch; `pick_device` asks torch itself."""
    if _may_have_cuda():
        return
    if name.startswith("cuda"):
        raise InputError(f"device = {name}: this machine, or this build of torch, has no CUDA device; take cpu or auto")
    reduced_precision(precision, "cpu")


def _may_have_cuda() -> bool:
    if version("torch").endswith("+cpu"):
        return False
    return sys.platform != "linux" or any(any(Path("/dev").glob(pattern)) for pattern in CUDA_FILES)


def pick_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device = {name}: torch finds {torch.cuda.device_count()} CUDA devices; take cpu or auto")
    return device


def device_of(module: torch.nn.Module) -> torch.device:
    """Where a module lies; one without any number of its own is at home on the CPU."""
    return next((tensor.device for tensor in chain(module.parameters(), module.buffers())), torch.device("cpu"))


def reduced_precision(name: str, device: str) -> torch.dtype | None:
    """What the backbone's products are computed in, where that is not fp32."""
    if name == "fp32":
        return None
    if device != "cuda":
        raise InputError(f"precision = {name}: it is for CUDA and no gain on {device}; take fp32")
    return torch.bfloat16


def threads_in_use() -> int:
    """Those of torch; where it is not loaded, those that it would take."""
    if "torch" in sys.modules:
        return torch.get_num_threads()
    asked = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(asked) if asked.isdigit() and int(asked) else cores


@contextmanager
def computing(threads: int | None) -> Iterator[None]:
    """The settings under which a run is reproducible; what the host had set comes back afterwards."""
    before = torch.get_num_threads()
    products = torch.get_float32_matmul_precision()
    torch.set_num_threads(threads or before)
    torch.set_float32_matmul_precision("highest")  # no TF32
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_num_threads(before)
        torch.set_float32_matmul_precision(products)


def keep_freed_memory() -> None:
    """Stop glibc from mapping and unmapping the large blocks of every step: 1.1 to 1.7 times faster on the CPU.

    For the command only: a library must not change its host's allocator.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return
    trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD, M_MMAP_MAX in malloc.h
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, 2**31 - 1)


def describe_environment(device: torch.device, kernels: str, precision: str = "fp32") -> dict[str, Any]:
    versions = {name: version(name) for name in ("episodica", "torch", "numpy", "pillow", "safetensors")}
    if kernels == "fused":
        versions["kernels"] = build.version()
    return {
        "python": platform.python_version(),
        "versions": versions,
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "capability": torch.backends.cpu.get_cpu_capability(),
        },
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "kernel_path": kernels,
        "precision": precision,
        "cudnn": {name: getattr(torch.backends.cudnn, name) for name in ("benchmark", "deterministic", "allow_tf32")},
        "matmul": torch.get_float32_matmul_precision(),
        "git_commit": _git_commit(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def _git_commit() -> str | None:
    """The commit of the source tree that runs; none where this file belongs to no repository."""
    here = Path(__file__).resolve()
    return _git(here.parent, "rev-parse", "HEAD") if _git(here.parent, "ls-files", here.name) else None


def _git(folder: Path, *command: str) -> str | None:
    try:
        asked = subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() or None
