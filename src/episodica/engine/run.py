"""One run from its config to its results: start it, continue it, or find it finished."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import torch

from episodica.config import RunConfig
from episodica.engine.checkpoint import Checkpoints, require_fit, restore_module
from episodica.engine.device import computing, describe_environment, reduced_precision
from episodica.engine.experiment import Experiment, load_experiment, new_learner
from episodica.engine.trainer import OnEvent, Start, Trainer
from episodica.errors import InputError, Interrupted
from episodica.files.door import Folder
from episodica.learners.learner import Learner
from episodica.records.results import Results
from episodica.records.run import CONFIG, RunFolder, load_config


def run_one(config: RunConfig, out: Path, on_event: OnEvent, stop: Callable[[], bool] = lambda: False) -> Results:
    """Train and evaluate into `out/<run id>`. A finished run is returned as it is, a broken one is continued."""
    with RunFolder(out, config) as folder:
        done = folder.finished()
        if done is not None:
            on_event({"event": "found", "run": config.run_id})
            return done
        with computing(config.threads):
            experiment = load_experiment(config, partial(reading_event, on_event))
            trainer = train_to_the_end(experiment, folder, on_event, stop)
        results = trainer.ledger.results("finished")
        folder.write_results(results)
        on_event({"event": "finished", "run": config.run_id})
        return results


def train_to_the_end(
    experiment: Experiment,
    folder: RunFolder,
    on_event: OnEvent,
    stop: Callable[[], bool],
    start: Start | None = None,
) -> Trainer:
    """Train to the end of the stream: from the folder's last checkpoint, else from `start`, else from the beginning."""
    folder.claim_split(experiment.split.hash, experiment.split.to_json(experiment.class_names))
    trainer = Trainer(experiment, folder, on_event, stop)
    config, notices = experiment.config, []
    trainer.learner.backbone.reduced = reduced_precision(config.precision, experiment.device.type)
    kernels = trainer.accelerate(notices.append)
    notices += folder.write_environment(describe_environment(experiment.device, kernels, config.precision))
    folder.forget_failure()
    try:
        trainer.run(notices, start)
    except InputError:
        raise  # what cannot be continued is left as it was found
    except BaseException as error:
        status = "interrupted" if isinstance(error, Interrupted | KeyboardInterrupt) else "failed"
        with suppress(OSError):  # a full disk is one of the reasons to be here
            folder.write_results(trainer.ledger.results(status))
        raise
    return trainer


def reading_event(on_event: OnEvent, what: str, done: int, total: int) -> None:
    on_event({"event": "reading", "what": what, "done": done, "total": total})


def load_learner(folder: str | Path | Folder, session: int | None = None) -> Learner:
    """The trained learner of a run folder, on the CPU and in evaluation mode: after a session, or the last one."""
    folder = folder if isinstance(folder, Folder) else Folder(Path(folder))
    if not folder.has(CONFIG):
        raise InputError(f"{folder} is not a run folder: it has no config.yaml")
    config = load_config(folder)
    checkpoints = Checkpoints.of(folder / "checkpoints", config)
    done = checkpoints.sessions()
    if not done or session not in (None, *done):
        raise InputError(f"{folder} has finished {len(done)} sessions: there is no session {session or 1} to load")
    learner = new_learner(config, torch.device("cpu"), pretrained=False)
    restore_module("learner", learner, checkpoints.at_end_of((session or done[-1]) - 1))
    require_fit(learner.eval(), config.image_size)
    return learner


@contextmanager
def stopping_gently(say: Callable[[str], None] = lambda text: None) -> Iterator[Callable[[], bool]]:
    """Ctrl-C asks to stop after the step, when everything can be saved; a second one stops at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()
        say("stopping after this step; press Ctrl-C again to stop at once")
        signal.signal(signal.SIGINT, previous)

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    previous = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, previous)
