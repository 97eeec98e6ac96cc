"""One run after another, in this process and with all its threads."""

import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from episodica.config import RunConfig
from episodica.engine.run import run_one
from episodica.errors import InputError, Interrupted
from episodica.files.door import Refused
from episodica.records.run import write_failure
from episodica.sweep.executor import OnEventFor, Outcome, Stop


@dataclass(frozen=True)
class InTurn:
    def run(self, configs: Sequence[RunConfig], out: Path, on_event_for: OnEventFor, stop: Stop) -> Outcome:
        outcome = Outcome()
        for config in configs:
            on_event = on_event_for(config)
            try:
                outcome.note(config, run_one(config, out, on_event, stop))
            except Interrupted:
                outcome.interrupted = True
                break
            except Exception as error:
                if not isinstance(error, InputError):  # whose message says it all
                    with suppress(OSError, Refused):  # a full disk is one of the reasons to be here
                        write_failure(config, out, traceback.format_exc())
                outcome.note(config, error)
                with suppress(Interrupted):  # the caller has stopped listening
                    on_event({"event": "failed", "run": config.run_id})
        return outcome
