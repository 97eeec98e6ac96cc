"""The command as a person types it: in this process where that is enough, as a process of its own where it is not."""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.conftest import image_cache, plain
from conformance.tiny import TINY
from episodica import cli
from episodica.cli.screen import complaints, screen

__all__ = ["image_cache", "plain"]

SCRIPT = Path(sys.executable).with_name("episodica")
BLANK = Path(__file__).with_name("blank.yaml")


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both streams, with line breaks as spaces."""
        return " ".join(f"{self.out} {self.err}".split())


Command = Callable[..., Said]


def words(overrides: Mapping[str, Any]) -> list[str]:
    """A recipe that sets nothing, and overrides as they stand on the command line."""
    return [str(BLANK)] + [
        f"--{path}={value if isinstance(value, str) else json.dumps(value)}" for path, value in overrides.items()
    ]


@pytest.fixture(autouse=True)
def wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr(screen, "width", 250)
    monkeypatch.setattr(complaints, "width", 250)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`command("run", "quickstart")` in this process; an exception that is not a message fails the test."""

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["episodica", *map(str, arguments)])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Cyclopts application invoked without tokens")
            with pytest.raises(SystemExit) as ended:
                cli.main()
        assert isinstance(ended.value.code, int)
        printed, complaints = capsys.readouterr()
        return Said(ended.value.code, printed, complaints)

    return run


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """The installed command as a process, which does not outlive the test."""
    processes: list[subprocess.Popen[str]] = []

    def run(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [SCRIPT, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Look every millisecond; the process must be alive when it happens."""
    give_up = time.monotonic() + 120
    while not happened():
        assert process.poll() is None, f"it ended before: {process.communicate()}"
        assert time.monotonic() < give_up, "it never happened"
        time.sleep(0.001)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """Two methods and two seeds in a file."""
    path = tmp_path / "tiny.yaml"
    cases = ["{method.name: ft}", "{method.name: erd, method.p: 0.4}"]
    fixed = {key: value for key, value in TINY.items() if key != "method.name"}
    lines = [f"{key}: {json.dumps(value)}" for key, value in fixed.items()]
    path.write_text("\n".join(["about: a test", *lines, "axes: {seed: [0, 1]}", f"cases: [{', '.join(cases)}]", ""]))
    return path
