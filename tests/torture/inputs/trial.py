"""Inputs in a process of their own with limits: each is answered or refused, in bounded time and memory."""

import json
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from torture.inputs.kind import MIB, Kind, Read

TOLERATED = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)  # of inputs, when drawn
LONGEST_REFUSAL = 50_000  # characters: a config may have a score of faults, with the names that there are for each
LONGEST_WAIT = 120  # seconds by the clock, for an input and for what is done between two: a busy machine is no fault


@dataclass(frozen=True)
class Outcome:
    """Of one input."""

    what: str  # "answered", "refused", or what must not have happened
    seconds: float = 0.0  # of computing
    memory: int = 0  # bytes that it took at most, beside what there was
    number: int = 0  # of the input in its batch
    data: bytes = b""  # the input, where something was wrong

    @property
    def right(self) -> bool:
        return self.what in ("answered", "refused")


def drawn(kind: Kind, number: int, count: int) -> Callable[[Callable[[bytes], None]], None]:
    """Lets `take` have so many inputs, always the same of one number."""

    def draw(take: Callable[[bytes], None]) -> None:
        chosen = settings(
            max_examples=count, database=None, deadline=None, phases=[Phase.generate], print_blob=False,
            suppress_health_check=TOLERATED,
        )  # fmt: skip
        seed(number)(chosen(given(kind.inputs)(take)))()

    return draw


def given_ones(inputs: Sequence[bytes]) -> Callable[[Callable[[bytes], None]], None]:
    def draw(take: Callable[[bytes], None]) -> None:
        for data in inputs:
            take(data)

    return draw


def tried(kind: Kind, draw: Callable[[Callable[[bytes], None]], None], place: Path) -> list[Outcome]:
    """Of all inputs that are drawn, in a child; one that ends it is the last."""
    folder = Path(tempfile.mkdtemp(dir=place))
    log, current = folder / "log", folder / "input"
    log.touch()
    number = os.fork()
    if not number:
        _in_child(kind, draw, folder, log, current)
    _, status = os.waitpid(number, 0)
    outcomes = [Outcome(**json.loads(line)) for line in log.read_text().splitlines()]
    outcomes = [one if one.right else _with_data(one, folder) for one in outcomes]
    if status:
        said = (folder / "said").read_text(errors="replace")[-1_500:]
        outcomes.append(Outcome(f"{_ended(status, kind)} {said}", number=len(outcomes) + 1, data=_read(current)))
    shutil.rmtree(folder)
    return outcomes


def _with_data(outcome: Outcome, folder: Path) -> Outcome:
    return Outcome(**{**asdict(outcome), "data": _read(folder / f"wrong-{outcome.number}")})


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _ended(status: int, kind: Kind) -> str:
    match os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0:
        case signal.SIGPROF:
            return f"computed for more than {kind.seconds:g} seconds"
        case signal.SIGALRM:
            return f"hung for {LONGEST_WAIT} seconds"
        case 0:
            return f"the process ended with {os.waitstatus_to_exitcode(status)}"
        case number:
            return f"the process was ended by signal {number}"


def _in_child(
    kind: Kind, draw: Callable[[Callable[[bytes], None]], None], folder: Path, log: Path, current: Path
) -> None:
    code = 99
    try:
        os.setpgid(0, 0)
        with (folder / "said").open("w") as said:
            os.dup2(
                said.fileno(), 2
            )  # what libraries say, which is kept for the case that one of them ends the process
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        (folder / "work").mkdir()
        signal.setitimer(signal.ITIMER_REAL, LONGEST_WAIT)
        with log.open("w") as said, kind.reader(folder / "work") as read:
            most = _memory("VmData") + kind.memory
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            trials = _Trials(kind, read, folder, current)

            def take(data: bytes) -> None:
                said.write(json.dumps(trials.one(data)) + "\n")
                said.flush()

            draw(take)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class _Trials:
    def __init__(self, kind: Kind, read: Read, folder: Path, current: Path) -> None:
        self.kind, self.read, self.folder, self.current, self.number = kind, read, folder, current, 0

    def one(self, data: bytes) -> dict[str, object]:
        self.number += 1
        self.current.write_bytes(data)
        Path("/proc/self/clear_refs").write_text("5")  # the most that was in memory is counted anew
        before, began = _memory("VmRSS"), time.process_time()
        signal.setitimer(signal.ITIMER_REAL, LONGEST_WAIT)
        signal.setitimer(signal.ITIMER_PROF, self.kind.seconds)  # either ends the process, whatever it does
        what = self._what(data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, LONGEST_WAIT)
        seconds, memory = time.process_time() - began, max(_memory("VmHWM") - before, 0)
        if memory > self.kind.memory:
            what = f"took {memory // MIB:,} MiB, more than {self.kind.memory // MIB:,}"
        outcome = {"what": what, "seconds": seconds, "memory": memory, "number": self.number}
        if not Outcome(what).right:
            (self.folder / f"wrong-{self.number}").write_bytes(data)
        return outcome

    def _what(self, data: bytes) -> str:
        try:
            self.read(data)
        except self.kind.refusals as refusal:
            if not 0 < len(str(refusal)) <= LONGEST_REFUSAL:
                return f"a refusal of {len(str(refusal))} characters"
            return "refused"
        except Exception:
            return traceback.format_exc(limit=-4)
        return "answered"


def _memory(what: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{what}:"))
    return int(line.split()[1]) * 1024


def most(outcomes: Iterable[Outcome]) -> str:
    outcomes = list(outcomes)
    seconds, memory = max(one.seconds for one in outcomes), max(one.memory for one in outcomes)
    return f"at most {seconds:.1f} s and {memory / MIB:.0f} MiB"
