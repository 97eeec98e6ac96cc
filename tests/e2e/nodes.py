"""A Ray cluster of three nodes on this machine, each with a disk of its own, of which any can be lost."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SOON_MISSED = {  # a node that is lost: of Ray's own settings
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}


class Nodes:
    """Three of them, each with one CPU and a folder for what its workers write."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self._folder, self._cluster = folder, Cluster()
        self._nodes: dict[str, Any] = {}  # by the names of their folders
        for _ in range(3):
            self.add()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    @property
    def disks(self) -> list[Path]:
        return [self._folder / name for name in self._nodes]

    def add(self) -> None:
        name = f"disk{len(list(self._folder.iterdir()))}"
        (self._folder / name).mkdir()
        how: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
        how |= {} if self._nodes else {"_system_config": SOON_MISSED}
        self._nodes[name] = self._cluster.add_node(**how, env_vars={"TMPDIR": str(self._folder / name)})

    def of(self, process: int) -> str:
        """The node to which a worker belongs: its environment says it."""
        environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        (place,) = (line.partition(b"=")[2] for line in environment if line.startswith(b"TMPDIR="))
        return Path(os.fsdecode(place)).name

    def lose(self, name: str) -> None:
        """All of its processes at once, as when its power is cut; with them goes its disk."""
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)

    def is_head(self, name: str) -> bool:
        return self._nodes[name] is self._cluster.head_node

    def shut_down(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(autouse=True)
def random_state_untouched() -> None:
    """Not by Ray, which draws ports in this process."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path_factory.mktemp("nodes"))
    yield nodes
    nodes.shut_down()
