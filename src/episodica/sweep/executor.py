"""What every way of running a grid has in common: what it is given, and what became of the runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.records.results import Results

if TYPE_CHECKING:
    from episodica.engine.trainer import OnEvent

OnEventFor = Callable[[RunConfig], "OnEvent"]
Stop = Callable[[], bool]
Verdict = Results | Exception | None  # of one run; none where it was interrupted


@dataclass
class Outcome:
    """What became of a grid of runs."""

    finished: list[tuple[RunConfig, Results]] = field(default_factory=list)
    failed: list[tuple[RunConfig, Exception]] = field(default_factory=list)
    interrupted: bool = False

    def note(self, config: RunConfig, verdict: Verdict) -> None:
        if isinstance(verdict, Results):
            self.finished.append((config, verdict))
        elif isinstance(verdict, Exception):
            self.failed.append((config, verdict))
        else:
            self.interrupted = True

    def verdict(self) -> Verdict:
        """Of the only run, in a form that can be sent to another process."""
        for _, results in self.finished:
            return results
        for _, error in self.failed:
            sure_to_arrive = isinstance(error, InputError | OSError)  # other errors may not survive the way
            return error if sure_to_arrive else RuntimeError(f"{type(error).__name__}: {error}")
        return None

    def in_order_of(self, configs: Sequence[RunConfig]) -> "Outcome":
        place = {config.run_id: i for i, config in enumerate(configs)}
        self.finished.sort(key=lambda done: place[done[0].run_id])
        self.failed.sort(key=lambda lost: place[lost[0].run_id])
        return self


class Executor(Protocol):
    """Runs into `out`. Finished runs are found, broken ones continued, and a failed run never stops the others."""

    def run(self, configs: Sequence[RunConfig], out: Path, on_event_for: OnEventFor, stop: Stop) -> Outcome: ...
