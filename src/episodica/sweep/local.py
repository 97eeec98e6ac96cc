"""Runs on this machine, one after another: a failed run never stops the others."""

import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from episodica.config import RunConfig
from episodica.engine.run import run_one
from episodica.engine.trainer import Tell
from episodica.errors import InputError, Interrupted
from episodica.records.results import Results

Watcher = Callable[[RunConfig], Tell]


@dataclass
class Outcome:
    """What became of a grid of runs."""

    finished: list[tuple[RunConfig, Results]] = field(default_factory=list)
    failed: list[tuple[RunConfig, Exception]] = field(default_factory=list)
    interrupted: bool = False


def run_all(configs: Sequence[RunConfig], out: Path, watcher: Watcher, stop: Callable[[], bool]) -> Outcome:
    """One after another, in this process."""
    outcome = Outcome()
    for config in configs:
        try:
            outcome.finished.append((config, run_one(config, out, watcher(config), stop)))
        except Interrupted:
            outcome.interrupted = True
            break
        except InputError as error:
            outcome.failed.append((config, error))
        except Exception as error:
            with suppress(OSError):  # a full disk is one of the reasons to be here
                (out / config.run_id / "error.log").write_text(traceback.format_exc())
            outcome.failed.append((config, error))
    return outcome
