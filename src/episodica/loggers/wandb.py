"""Runs of Weights & Biases, which stay on this machine (offline) unless WANDB_MODE says otherwise.

`wandb sync wandb/offline-run-*` sends them when and where you want.
"""

import os
import shutil
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import wandb
from PIL import Image

from episodica.loggers.logger import Along, Ended, LoggedRun, Logger, ResultsTable

EXIT = {"finished": 0, "interrupted": 130, "failed": 1}


class WeightsAndBiases(Logger):
    place = "wandb sync wandb/offline-run-*  (to send it; until then it stays in this folder)"

    def __init__(self, run: LoggedRun) -> None:
        folder = Path(os.environ.get("WANDB_DIR") or ".")
        for earlier in (folder / "wandb").glob(f"offline-run-*-{run.id}"):
            shutil.rmtree(earlier)
        self._run = wandb.init(
            project="episodica",
            group=run.group,
            name=run.label,
            id=run.id,
            notes=run.about,
            config=run.settings,
            dir=folder,
            mode=None if "WANDB_MODE" in os.environ else "offline",
            resume="allow" if os.environ.get("WANDB_MODE") == "online" else None,
            reinit="create_new",
            settings=wandb.Settings(
                silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True
            ),
        )
        for along in ("step", "session"):
            self._run.define_metric(along, hidden=True)
        for names, along in (("loss/*", "step"), ("lr", "step"), ("accuracy/*", "session"), ("forgetting", "session")):
            self._run.define_metric(names, step_metric=along)

    def points(self, along: Along, at: int, values: Mapping[str, float]) -> None:
        self._run.log({along: at, **values})

    def table(self, table: ResultsTable) -> None:
        self._run.log({table.name: wandb.Table(columns=list(table.columns), data=[list(row) for row in table.rows])})

    def picture(self, name: str, png: bytes) -> None:
        with Image.open(BytesIO(png)) as image:
            self._run.log({name: wandb.Image(image)})

    def flush(self) -> None:
        """A process of its own writes what it was told."""

    def close(self, ended: Ended) -> None:
        self._run.finish(exit_code=EXIT[ended])
