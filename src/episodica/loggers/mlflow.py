"""Runs of MLflow, an experiment for each recipe: in the store that MLFLOW_TRACKING_URI names, or else in `mlruns`.

MLflow keeps its file store as it is and recommends a database; it is what needs no set-up, so it is the default here.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from episodica.loggers.logger import Along, Ended, LoggedRun, Logger, ResultsTable

STATUS = {"finished": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}
RUN = "episodica.run"
LONGEST, MOST = 6000, 100  # letters of a value, and settings in one message


class MLflow(Logger):
    place = "mlflow ui (in this folder; MLflow's file store needs MLFLOW_ALLOW_FILE_STORE=true)"

    def __init__(self, run: LoggedRun) -> None:
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or Path("mlruns").absolute().as_uri())
        experiment = self._experiment(f"episodica {run.group}")
        for earlier in self._client.search_runs([experiment], f"tags.`{RUN}` = '{run.id}'"):
            self._client.delete_run(earlier.info.run_id)
        tags = {RUN: run.id, "mlflow.note.content": run.about}
        self._id = self._client.create_run(experiment, run_name=run.label, tags=tags).info.run_id
        params = [Param(path, str(value)[:LONGEST]) for path, value in run.settings.items()]
        for first in range(0, len(params), MOST):
            self._client.log_batch(self._id, params=params[first : first + MOST])
        self._waiting: list[Metric] = []

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        return found.experiment_id if found else self._client.create_experiment(name)

    def points(self, along: Along, at: int, values: Mapping[str, float]) -> None:
        now = time.time_ns() // 1_000_000
        self._waiting += [Metric(name, value, now, at) for name, value in values.items()]
        if len(self._waiting) >= MOST:
            self.flush()

    def table(self, table: ResultsTable) -> None:
        columns = zip(*table.rows, strict=True)
        self._client.log_dict(self._id, dict(zip(table.columns, map(list, columns), strict=True)), f"{table.name}.json")
        self._client.log_text(self._id, table.markdown(), f"{table.name}.md")

    def picture(self, name: str, png: bytes) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.png"
            path.write_bytes(png)
            self._client.log_artifact(self._id, str(path))

    def flush(self) -> None:
        if self._waiting:
            self._client.log_batch(self._id, metrics=self._waiting)
            self._waiting = []

    def close(self, ended: Ended) -> None:
        self.flush()
        self._client.log_batch(self._id, tags=[RunTag("episodica.ended", ended)])
        self._client.set_terminated(self._id, STATUS[ended])
