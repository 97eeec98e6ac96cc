"""A Ray cluster (Ray Core): one that is there, or one that is started on this machine for the occasion."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from episodica.errors import InputError, not_installed

OBJECT_STORE = 256 * 2**20  # bytes, of a cluster that is started here
MANNERS = {  # of a cluster that is started here, where the user has not chosen others
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "A worker died or was killed",  # we say it shorter
    "RAY_worker_niceness": "0",  # as nice as a process without Ray
}
Disk = Literal["auto", "shared", "own"]  # whether workers see the driver's files


@contextmanager
def connected(address: str | None, cpus: int, gpus: float = 0) -> Iterator[Any]:
    """Ray, connected to machines of which one has so many CPUs and GPUs; `address` is "auto" or HOST:PORT, and none
    starts a cluster here. Where a host program has connected Ray already, that is used and left as it is."""
    for key, value in MANNERS.items():
        os.environ.setdefault(key, value)
    try:
        import ray
    except ImportError:
        raise not_installed("work on a cluster needs ray", "cluster") from None
    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address)
    try:
        _check_room(ray, cpus, gpus)
        yield ray
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    here = {} if address else {"object_store_memory": OBJECT_STORE}
    try:
        ray.init(address=address or "local", **quiet, **here)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(f"no Ray cluster could be reached at {address or 'this machine'}: {error}") from None


def _check_room(ray: Any, cpus: int, gpus: float) -> None:
    free = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in free):
        most = max((node.get("CPU", 0), node.get("GPU", 0)) for node in free)
        raise InputError(
            f"no machine of the cluster has {cpus} CPUs and {gpus:g} GPUs for a process: the largest has "
            f"{most[0]:g} and {most[1]:g}; lower cpus or gpus"
        )
