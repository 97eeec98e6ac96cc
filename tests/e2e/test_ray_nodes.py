"""A Ray cluster of three nodes on this machine, each with a disk of its own: nodes and commands are lost, and what
comes out is what one process computes."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.tiny import TINY, outcome, tiny
from e2e.conftest import wait_for
from episodica.config import RunConfig
from episodica.sweep.folder_sync import own_folder, progress

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks processes up in /proc")]

Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[[RunConfig], Path]

FIXED = {**TINY, "stream.tasks": 2, "train.episodes": 40, "threads": None}  # seconds, so that a run can be met
SOON_MISSED = {  # a node that is lost: of Ray's own settings
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}
METHODS = ("erd", "ft", "nrd")


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


def configs() -> dict[str, RunConfig]:
    return {method: tiny({**FIXED, "threads": 1, "method.name": method}) for method in METHODS}


def arguments(tmp_path: Path, nodes: Nodes) -> list[object]:
    recipe = tmp_path / "sweep.yaml"
    fixed = {key: value for key, value in FIXED.items() if key != "method.name"}
    lines = [f"{key}: {json.dumps(value)}" for key, value in fixed.items()]
    cases = ", ".join(f"{{method.name: {method}}}" for method in METHODS)
    recipe.write_text("\n".join([*lines, f"cases: [{cases}]", ""]))
    options = ["--on", "ray", "--address", nodes.address, "--disk", "own", "--train.checkpoint_seconds", "0"]
    return ["run", recipe, *options, "--out", tmp_path / "runs"]


def workers(process: "subprocess.Popen[str]") -> dict[str, int]:
    """The processes of all runs, which the command names when they start."""
    found: dict[str, int] = {}
    assert process.stdout is not None
    for line in process.stdout:
        if started := re.match(r"(\w+) +on .+, process (\d+)", line):
            found[started[1]] = int(started[2])
        if len(found) == len(METHODS):
            return found
    raise AssertionError(f"it ended before: {process.communicate()}")


def without_locks(folder: Path) -> dict[str, Any]:
    """What a run left behind; a lock stays where the process was that held it."""
    found = outcome(folder)
    return found | {"files": [name for name in found["files"] if name != ".lock"]}


def check_equal_to_one_process(out: Path, plain: Run) -> None:
    for config in configs().values():
        assert without_locks(out / config.run_id) == without_locks(plain(config))


def test_a_lost_node_costs_no_run_and_no_bit(start: Start, plain: Run, nodes: Nodes, tmp_path: Path) -> None:
    process = start(*arguments(tmp_path, nodes))
    places = {method: nodes.of(worker) for method, worker in workers(process).items()}
    assert len(set(places.values())) == 3, "every node has a run"
    lost = [method for method, place in places.items() if not nodes.is_head(place)][-1]  # that began last
    run = configs()[lost].run_id
    there = own_folder(tmp_path / "runs").path.name
    disk = next(disk for disk in nodes.disks if disk.name == places[lost])
    wait_for(lambda: progress(disk / there / run) >= "001-00000003", process)
    nodes.lose(places[lost])
    printed, complaints = process.communicate()
    assert (process.returncode, complaints) == (0, "")
    assert f"{lost}: its worker was lost; another one continues (1)" in printed
    check_equal_to_one_process(tmp_path / "runs", plain)
    assert not [path for disk in nodes.disks for path in disk.iterdir() if path.name == there], "nothing stays there"
    nodes.add()


def test_a_killed_command_is_given_again_and_goes_on(start: Start, plain: Run, nodes: Nodes, tmp_path: Path) -> None:
    process = start(*arguments(tmp_path, nodes))
    running = workers(process)
    run = configs()["erd"].run_id
    wait_for(lambda: progress(tmp_path / "runs" / run) >= "001-end", process)
    process.kill()
    process.communicate()
    again = start(*arguments(tmp_path, nodes))
    printed, complaints = again.communicate()
    assert (again.returncode, complaints) == (0, "")
    assert "3 of 3 runs finished" in printed
    check_equal_to_one_process(tmp_path / "runs", plain)
    assert not any(Path(f"/proc/{worker}").exists() for worker in running.values()), "a worker outlived its command"
