"""Runs on a real Ray cluster on this machine: workers die, users stop it, and the numbers are those of a local run."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.tiny import TINY, outcome, tiny
from e2e.conftest import Command, wait_for
from episodica.config import RunConfig
from episodica.sweep.folder_sync import own_folder, progress

Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[[RunConfig], Path]

ray = pytest.mark.skipif(os.name != "posix", reason="workers are killed with a signal")
FIXED = {**TINY, "stream.tasks": 2, "train.epochs": 2, "train.episodes": 5, "threads": None}
OFTEN = ("--train.checkpoint_seconds", "0")


def sweep(tmp_path: Path, *cases: str) -> Path:
    path = tmp_path / "sweep.yaml"
    lines = [f"{key}: {json.dumps(value)}" for key, value in FIXED.items() if key != "method.name"]
    path.write_text("\n".join([*lines, f"cases: [{', '.join(cases)}]", ""]))
    return path


def process_of(label: str, process: "subprocess.Popen[str]") -> int:
    """The worker that the command names when a run starts."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.match(rf"{label} +on .+, process (\d+)", line)
        if found:
            return int(found[1])
    raise AssertionError(f"it ended before: {process.communicate()}")


@ray
def test_a_killed_worker_is_replaced_a_failed_run_is_named_and_the_numbers_are_the_same(
    start: Start, plain: Run, tmp_path: Path
) -> None:
    recipe = sweep(tmp_path, "{method.name: ft, data.per_class: 9}", "{method.name: erd}")
    good, bad = tiny({**FIXED, "threads": 1}), tiny({**FIXED, "method.name": "ft", "data.per_class": 9})
    out = tmp_path / "runs"
    process = start("run", recipe, "--on", "ray", *OFTEN, "--out", out)
    worker = process_of("erd", process)
    wait_for(lambda: progress(out / good.run_id) >= "001-00000003", process)
    os.kill(worker, signal.SIGKILL)
    printed, complaints = process.communicate()
    assert process.returncode == 2
    assert "erd: its worker was lost; another one continues (1)" in printed
    assert "1 of 2 runs finished (1 failed)" in printed
    assert complaints.startswith(f"failed ({bad.run_id}): ")
    assert "Ray" not in complaints + printed
    assert "raylet" not in complaints + printed
    assert outcome(out / good.run_id) == outcome(plain(good))
    environment = json.loads((out / good.run_id / "env.json").read_text())
    assert (environment["threads"], environment["kernel_path"]) == (1, "torch")
    assert not list(out.glob(".seen-*"))


@ray
def test_ctrl_c_stops_gently_and_what_workers_wrote_to_their_own_disk_comes_back(
    start: Start, command: Command, plain: Run, tmp_path: Path
) -> None:
    config, out = tiny({**FIXED, "threads": 1}), tmp_path / "runs"
    arguments = ("run", sweep(tmp_path, "{method.name: erd}"), "--on", "ray", "--disk", "own", *OFTEN, "--out", out)
    process = start(*arguments)
    process_of("erd", process)
    wait_for(lambda: progress(own_folder(out).path / config.run_id) >= "001-00000003", process)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate()
    assert process.returncode == 130
    assert "Interrupted; everything is saved." in printed
    assert json.loads((out / config.run_id / "results.json").read_text())["status"] == "interrupted"
    assert progress(out / config.run_id) >= "001-00000003"
    assert not own_folder(out).exists()
    again = start(*arguments)
    printed, complaints = again.communicate()
    assert (again.returncode, complaints) == (0, "")
    ours, theirs = outcome(out / config.run_id), outcome(plain(config))
    theirs["files"].remove(".lock")
    ours["files"] = [name for name in ours["files"] if name != ".lock"]
    assert ours == theirs
    assert "erd  was finished before" in command(*arguments).out  # no cluster is needed for that


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cpus", "2"], "--cpus goes with --on ray"),
        (["--address", "auto"], "--address goes with --on ray"),
        (["--on", "ray", "--cpus", "0"], "a run needs 1 CPU or more"),
        (["--on", "ray", "--gpus", "-1"], "a run needs 1 CPU or more and 0 GPUs or more"),
        (["--on", "ray", "--threads", "2"], "2 threads on 1 CPUs of a run: raise cpus, or lower threads"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], message: str, command: Command, tmp_path: Path
) -> None:
    said = command("run", sweep(tmp_path, "{method.name: ft}"), *options, "--out", tmp_path / "runs")
    assert said.code == 2
    assert message in said.text


def test_without_ray_the_extra_is_named(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    said = command("run", sweep(tmp_path, "{method.name: ft}"), "--on", "ray", "--out", tmp_path / "runs")
    assert said.code == 2
    assert "'.[cluster]'" in said.text
