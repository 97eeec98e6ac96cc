"""The one place that knows what computes: device, threads, allocator, and how that is recorded."""

import ctypes
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from episodica.errors import InputError


def pick_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device = {name}: this machine has no CUDA device that torch can use; take cpu or auto")
    return torch.device(name)


def set_threads(threads: int | None) -> None:
    """CPU threads for torch; by default as many as the process may use."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    torch.set_num_threads(threads or available or 1)


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


def describe_environment(device: torch.device) -> dict[str, Any]:
    packages = ("episodica", "torch", "numpy", "pillow", "safetensors")
    return {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "capability": torch.backends.cpu.get_cpu_capability(),
        },
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "kernel_path": "torch",
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
    """The commit of the source tree that runs, where it is one."""
    here = Path(__file__).resolve().parent
    try:
        asked = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() or None
