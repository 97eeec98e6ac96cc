"""What every logger is: one run in a place where people look at curves."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from episodica.config import RunConfig
from episodica.config.flat import flatten

Along = Literal["step", "session"]  # what a curve is drawn along
Ended = Literal["finished", "interrupted", "failed"]


@dataclass(frozen=True)
class LoggedRun:
    """What a logger is told of a run before anything happens in it."""

    config: RunConfig
    group: str  # the recipe
    label: str  # what tells the run apart from the others of its grid
    out: Path  # the folder of run folders

    @property
    def id(self) -> str:
        return self.config.run_id

    @property
    def settings(self) -> dict[str, Any]:
        return flatten(self.config.tree())

    @property
    def about(self) -> str:
        config = self.config
        text = f"{config.method.name} with {config.learner.name} and {config.backbone.name} on {config.data.name}"
        return f"{text}\n\nWARNING: {config.seen_before}" if config.seen_before else text


@dataclass(frozen=True)
class ResultsTable:
    """Accuracies are fractions, as in `results.json`."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[float | int | None, ...]]

    def markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *(map(_cell, row) for row in self.rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Logger(ABC):
    """Making one begins the record of a run, in place of what there was of the same run: one that is continued is told
    from its beginning, so that no point is there twice."""

    place: ClassVar[str]  # where a person finds it, with `{out}` for the folder of run folders

    @abstractmethod
    def __init__(self, run: LoggedRun) -> None: ...

    @abstractmethod
    def points(self, along: Along, at: int, values: Mapping[str, float]) -> None:
        """One more point of some curves."""

    @abstractmethod
    def table(self, table: ResultsTable) -> None: ...

    @abstractmethod
    def picture(self, name: str, png: bytes) -> None: ...

    @abstractmethod
    def flush(self) -> None:
        """Show what was told so far."""

    @abstractmethod
    def close(self, ended: Ended) -> None: ...


def _cell(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
