"""The command in a process of its own, above a disk that fails, tears or dies at the n-th operation.

The layer is a small C library that is loaded before the C library (`shim.c`). A process that has it forks a child for
every attempt: everything is imported already, so that an attempt takes as long as the command itself.
"""

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

SHIM = Path(__file__).with_name("shim.c")


class How(IntEnum):
    """As `enum how` of the layer."""

    COUNT = 0  # nothing goes wrong
    KILL = 1  # the process ends before the operation
    TEAR = 2  # the process ends in the middle of it
    FAIL = 3  # the operation fails, once
    FULL = 4  # the operation and all later ones fail that need room


@dataclass(frozen=True)
class Ended:
    code: int | None  # none: killed
    operations: int
    said: str

    @property
    def clean(self) -> bool:
        """Ended with an answer or with a sentence, not with a trace."""
        return self.code in (0, 1, 2) and "Traceback" not in self.said


def build(folder: Path) -> Path:
    built = folder / "shim.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", built, SHIM, "-ldl"], check=True)
    return built


def loaded() -> bool:
    return hasattr(ctypes.CDLL(None), "torture_begin")


def load_and_start_again() -> None:
    """Where this process has no layer: become one that has it, with the same arguments."""
    if not loaded():
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"LD_PRELOAD": str(build(Path(folder)))}
            sys.exit(subprocess.run([sys.executable, "-m", "torture", *sys.argv[1:]], env=environment).returncode)


def attempt(
    act: Callable[[], int], root: Path, *, at: int = 0, how: How = How.COUNT, error: int = 0, log: Path | None = None
) -> Ended:
    """What becomes of `act` in a child, where operations below `root` are counted from 1."""
    counter = mmap.mmap(-1, 4)
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            _in_child(act, root, at, how, error, log, counter, said.fileno())
        _, status = os.waitpid(child, 0)
        said.seek(0)
        text = said.read().decode(errors="replace")
    killed = os.WIFSIGNALED(status)
    assert not killed or os.WTERMSIG(status) == signal.SIGKILL, f"ended by signal {os.WTERMSIG(status)}: {text}"
    return Ended(None if killed else os.WEXITSTATUS(status), int.from_bytes(counter[:], sys.byteorder), text)


def _in_child(
    act: Callable[[], int], root: Path, at: int, how: How, error: int, log: Path | None, counter: mmap.mmap, said: int
) -> None:
    for number in (1, 2):
        os.dup2(said, number)
    numbers = [-1, -1]
    if log:
        log.mkdir()
        numbers = [os.open(log / name, os.O_CREAT | os.O_WRONLY, 0o600) for name in ("operations", "data")]
    shared = ctypes.c_int.from_buffer(counter)
    begin = ctypes.CDLL(None).torture_begin
    begin(os.fsencode(root), at, int(how), error, *numbers, ctypes.byref(shared))
    code = 99
    try:
        code = act()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
