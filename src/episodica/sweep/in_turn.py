"""One run after another, in this process and with all its threads."""

import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from episodica.config import RunConfig
from episodica.engine.run import run_one
from episodica.errors import InputError, Interrupted
from episodica.sweep.executor import Outcome, Stop, Watcher


@dataclass(frozen=True)
class InTurn:
    def run(self, configs: Sequence[RunConfig], out: Path, watcher: Watcher, stop: Stop) -> Outcome:
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
