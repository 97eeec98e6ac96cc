"""Loggers follow what runs write: each run's `events.jsonl` as it grows, and its results when it ends.

They are told nothing that is not in the run folder, so that a log can be made anew at any time: where a run is
continued, its events are cut at the checkpoint, and what follows them begins again. A logger that fails is given up,
with a notice; the run goes on.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from episodica.config import RunConfig
from episodica.errors import InputError, nearest, not_installed

if TYPE_CHECKING:
    from episodica.engine.trainer import OnEvent
    from episodica.loggers.logger import Logger

LOGGERS = {  # and the class in the module of that name, and the package that it needs
    "tensorboard": ("TensorBoard", "tensorboard"),
    "mlflow": ("MLflow", "mlflow-skinny"),
    "wandb": ("WeightsAndBiases", "wandb"),
}
MANNERS = {  # of packages that would tell others what they do, where the user has not chosen so
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",  # which is kept as it is; without it a database would have to be set up
    "WANDB_ERROR_REPORTING": "false",
}
OnEventFor = Callable[[RunConfig], "OnEvent"]


def find_loggers(names: Sequence[str]) -> dict[str, type["Logger"]]:
    """Refuses what is not known or not installed, before anything is computed."""
    for key, value in MANNERS.items():
        os.environ.setdefault(key, value)
    unknown = [name for name in names if name not in LOGGERS]
    if unknown:
        raise InputError(f'unknown logger "{unknown[0]}": {nearest(unknown[0], LOGGERS)}')
    return {name: _find(name) for name in dict.fromkeys(names)}


def _find(name: str) -> type["Logger"]:
    kind, package = LOGGERS[name]
    try:
        return getattr(import_module(f"episodica.loggers.{name}"), kind)
    except ImportError as error:
        if (error.name or "").startswith("episodica"):
            raise
        raise not_installed(f"logging to {name} needs {package}, which alone is enough", "log") from None


@contextmanager
def following(
    loggers: Mapping[str, type["Logger"]],
    group: str,
    labels: Mapping[str, str],
    out: Path,
    on_event_for: OnEventFor,
) -> Iterator[OnEventFor]:
    """Listeners that pass on every event and then let the loggers look. Runs without an end were interrupted."""
    if not loggers:
        yield on_event_for
        return
    from episodica.loggers.followed_run import FollowedRun
    from episodica.loggers.logger import LoggedRun

    runs: list[FollowedRun] = []

    def for_run(config: RunConfig) -> "OnEvent":
        listen = on_event_for(config)
        run = LoggedRun(config, group, labels[config.run_id], out)
        followed = FollowedRun(run, loggers, lambda text: listen({"event": "notice", "text": text}))
        runs.append(followed)

        def on_event(event: Mapping[str, Any]) -> None:
            listen(event)
            followed.on_event(event)

        return on_event

    try:
        yield for_run
    finally:
        for followed in runs:
            followed.end("interrupted")
