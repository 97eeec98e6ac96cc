"""One run from its config to its results: start it, continue it, or find it finished."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from episodica.config import RunConfig
from episodica.engine.device import describe_environment, set_threads
from episodica.engine.problem import load_problem
from episodica.engine.trainer import Tell, Trainer
from episodica.errors import Interrupted
from episodica.records.results import Results
from episodica.records.run import RunFolder


def run_one(config: RunConfig, out: Path, watch: Tell, stop: Callable[[], bool] = lambda: False) -> Results:
    """Train and evaluate into `out/<run id>`. A finished run is returned as it is, a broken one is continued."""
    with RunFolder(out, config) as folder:
        done = folder.results()
        if done is not None and done.status == "finished":
            watch({"event": "found", "run": config.run_id})
            return done
        set_threads(config.threads)
        problem = load_problem(config)
        folder.write_split(problem.split.to_json())
        folder.write("env.json", describe_environment(problem.device))
        trainer = Trainer(problem, folder, watch, stop)
        try:
            trainer.run()
        except Interrupted:
            folder.write_results(trainer.ledger.results("interrupted"))
            raise
        results = trainer.ledger.results("finished")
        folder.write_results(results)
        watch({"event": "finished", "run": config.run_id})
        return results


@contextmanager
def stopping_gently() -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks to stop after the step, when everything can be saved; a second one stops at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, previous)

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    previous = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
