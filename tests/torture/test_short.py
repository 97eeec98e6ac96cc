"""A short pass of the torture bench (`make torture` is the long one), and the simulated disk against a real one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torture.__main__ import OF_STORIES
from torture.power import Disk, Operation

STORIES = ["forget", "image cache"]
needs_layer = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="the layer below the command needs Linux and cc"
)


def tortured(*arguments: object) -> str:
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "torture", *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd=tests, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_layer
def test_after_a_fault_the_same_command_ends_as_if_nothing_had_happened() -> None:
    said = tortured(*OF_STORIES, "--share", 0.01, "--kills", 4, "--only", *STORIES)
    for tried in ("killed", "two at once"):
        assert said.count(f"{tried}: ") == len(STORIES)
    assert "power cut" in said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="how much memory an input takes is read from /proc")
def test_hostile_inputs_are_answered_or_refused() -> None:
    said = tortured("inputs", "--inputs", 150)
    for kind in ("images, HEIF", "archives, zip", "pickles", "safetensors", "YAML, configs", "JSON, events", "HTTP"):
        assert f"inputs: {kind}: " in said
    assert said.endswith("0 wrong\n")


def written(disk: Disk, survives: bool) -> dict[str, bytes | None]:
    return {name: left.data for name, left in disk.after_power_cut(lambda: survives).items() if name != "."}


def test_what_was_flushed_survives_and_nothing_else_need() -> None:
    disk = Disk.of(Path(os.devnull))
    for operation in (
        Operation("create", "new.part", "", 0, b""),
        Operation("write", "new.part", "", 0, b"whole"),
        Operation("rename", "new.part", "new", 0, b""),
    ):
        disk.do(operation)
    assert written(disk, survives=False) == {}
    assert written(disk, survives=True) == {"new": b"whole"}
    disk.do(Operation("fsync", ".", "", 0, b""))
    assert written(disk, survives=False) == {"new": b""}, "a name without its bytes, as after a hasty rename"
    disk.do(Operation("fsync", "new", "", 0, b""))
    assert written(disk, survives=False) == {"new": b"whole"}
    disk.do(Operation("unlink", "new", "", 0, b""))
    assert written(disk, survives=False) == {"new": b"whole"}
    assert written(disk, survives=True) == {}


def test_operations_on_one_folder_keep_their_order() -> None:
    disk = Disk.of(Path(os.devnull))
    for name in "abc":
        disk.do(Operation("create", name, "", 0, b""))
    answers = iter([True, False, True])
    assert set(disk.after_power_cut(lambda: next(answers, True))) == {".", "a"}
