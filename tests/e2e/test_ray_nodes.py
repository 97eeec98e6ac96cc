"""A Ray cluster of three nodes on this machine, each with a disk of its own: nodes and commands are lost, and what
comes out is what one process computes."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.tiny import TINY, outcome, tiny
from e2e.conftest import wait_for
from e2e.nodes import Nodes, nodes, random_state_untouched
from episodica.config import RunConfig
from episodica.sweep.folder_sync import own_folder, progress

__all__ = ["nodes", "random_state_untouched"]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks processes up in /proc")]

Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[[RunConfig], Path]

FIXED = {**TINY, "stream.tasks": 2, "train.episodes": 40, "threads": None}  # seconds, so that a run can be met
METHODS = ("erd", "ft", "nrd")


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
