"""The command in a process of its own, above a disk that fails, tears or dies at the n-th operation.

The layer is a small C library that is loaded before the C library (`shim.c`). A process that has it forks a child for
every attempt: everything is imported already, so that an attempt takes as long as the command itself.
"""

import ctypes
import mmap
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO

SHIM = Path(__file__).with_name("shim.c")
IN_USE = 3  # the code of a command that finds another process at work
LONGEST = 300  # seconds that a command may take


class How(IntEnum):
    """As `enum how` of the layer."""

    COUNT = 0  # nothing goes wrong
    KILL = 1  # the process ends before the operation
    TEAR = 2  # the process ends in the middle of it
    FAIL = 3  # the operation fails, once
    FULL = 4  # the operation and all later ones fail that need room
    LEAP = 5  # the clock on the wall leaps
    STOP = 6  # the process stops before the operation until it is told to go on


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and at which operation, counted from 1."""

    how: How = How.COUNT
    at: int = 0
    value: int = 0  # the number of the error, or the days of the leap


@dataclass(frozen=True)
class Ended:
    code: int | None  # none: killed
    operations: int
    said: str

    @property
    def clean(self) -> bool:
        """Ended with an answer or with a sentence, not with a trace."""
        return self.code in (0, 1, 2, IN_USE) and "Traceback" not in self.said


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


class Child:
    """A process that does one thing, with operations below `root` counted; what it says is kept."""

    def __init__(self, act: Callable[[], int], root: Path, fault: Fault | None = None, log: Path | None = None) -> None:
        self._counter = mmap.mmap(-1, 4)
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the child has ended
        sys.stdout.flush()
        self.number = os.fork()
        if not self.number:
            _in_child(act, root, fault or Fault(), log, self._counter, self._said.fileno())

    def stopped(self) -> bool:
        """Wait until it stops or ends: whether it has stopped."""
        ended = os.waitid(os.P_PID, self.number, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        return ended is not None and ended.si_code == os.CLD_STOPPED

    def ends_within(self, seconds: float) -> bool:
        """Whether it has ended, when it has or when so many seconds are over."""
        watched = os.pidfd_open(self.number)
        try:
            return bool(select.select([watched], [], [], seconds)[0])
        finally:
            os.close(watched)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.number, number)

    def ended(self) -> Ended:
        """Wait for its end, and for that of what it has started."""
        hung = not self.ends_within(LONGEST)
        if hung:
            self.send(signal.SIGKILL)
        _, status = os.waitpid(self.number, 0)
        _wait_for_orphans(self.number)
        with self._said:
            self._said.seek(0)
            text = self._said.read().decode(errors="replace")
        killed = os.WIFSIGNALED(status)
        assert not hung, f"took more than {LONGEST} seconds: {text}"
        assert not killed or os.WTERMSIG(status) == signal.SIGKILL, f"ended by signal {os.WTERMSIG(status)}: {text}"
        return Ended(None if killed else os.WEXITSTATUS(status), int.from_bytes(self._counter[:], sys.byteorder), text)


def attempt(act: Callable[[], int], root: Path, fault: Fault | None = None, log: Path | None = None) -> Ended:
    """What becomes of `act` in a child."""
    return Child(act, root, fault, log).ended()


def adopt_orphans() -> None:
    """What a killed child has started becomes ours, so that its end can be waited for (Linux)."""
    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def _wait_for_orphans(group: int) -> None:
    while True:
        try:
            os.waitpid(-group, 0)
        except ChildProcessError:
            return


def _in_child(
    act: Callable[[], int], root: Path, fault: Fault, log: Path | None, counter: mmap.mmap, said: int
) -> None:
    os.setpgid(0, 0)
    for number in (1, 2):
        os.dup2(said, number)
    numbers = [-1, -1]
    if log:
        log.mkdir()
        numbers = [os.open(log / name, os.O_CREAT | os.O_WRONLY, 0o600) for name in ("operations", "data")]
    shared = ctypes.c_int.from_buffer(counter)
    begin = ctypes.CDLL(None).torture_begin
    begin(os.fsencode(root), fault.at, int(fault.how), fault.value, *numbers, ctypes.byref(shared))
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
