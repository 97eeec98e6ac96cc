"""What a run measured: intervals, forgetting, and the shape of `results.json`. Accuracies are fractions."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
from pydantic import BaseModel

from episodica.config import RunConfig
from episodica.types import Shape

SCHEMA = 1
UNSEEN = "unseen"  # the name of the pool of meta-test classes; tasks are named "1", "2", ...


class Mean(BaseModel):
    """A mean over episodes with its 95 % interval, given this model and these images."""

    mean: float
    ci95: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        n = len(values)
        mean = sum(values) / n
        spread = sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
        return cls(mean=mean, ci95=1.96 * spread / sqrt(n))


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of `count` things (Wilson 1927): sensible for few things and near 0 or 1 too."""
    z = 1.96
    middle = share + z**2 / (2 * count)
    spread = z * sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    scale = 1 + z**2 / count
    return max((middle - spread) / scale, 0.0), min((middle + spread) / scale, 1.0)


class OverEpisodes(Mean):
    episodes: int


class OfTask(Mean):
    task: int


class Session(BaseModel):
    """One row of the table: after a session, how well the learner does on unseen and on seen classes."""

    session: int
    classes_seen: int
    meta_test: OverEpisodes
    seen: Mean
    per_task: list[OfTask]
    forgetting: float | None
    seconds_train: float
    seconds_eval: float


class Average(BaseModel):
    meta_test: float
    seen: float


class Evaluation(BaseModel):
    """The same training evaluated with another way or number of shots."""

    way: int
    shots: int
    sessions: list[Session]
    average: Average | None


class Results(BaseModel):
    """The content of `results.json`."""

    schema_: int = SCHEMA
    status: str
    run: str
    method: str
    learner: str
    backbone: str
    dataset: str
    tasks: int
    shape: dict[str, int]
    seed: int
    split_hash: str
    scale: float
    warning: str | None = None  # why accuracy on unseen classes is not what it says
    sessions: list[Session]
    average: Average | None
    evaluations: list[Evaluation]

    def each_evaluation(self) -> list["Results"]:
        """One for each way and number of shots, that of training first."""
        others = [
            self.model_copy(
                update={
                    "shape": {**self.shape, "way": other.way, "shots": other.shots},
                    "sessions": other.sessions,
                    "average": other.average,
                    "evaluations": [],
                }
            )
            for other in self.evaluations
        ]
        return [self, *others]

    def to_json(self) -> dict[str, Any]:
        values = self.model_dump(exclude={"warning"} if self.warning is None else None)
        return {"schema": values.pop("schema_"), **values}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Results":
        if record["schema"] != SCHEMA:
            raise ValueError(f"schema {record['schema']}, not {SCHEMA}")
        return cls.model_validate({**record, "schema_": record["schema"]})


def mean_over_tasks(tasks: Sequence[Mean]) -> Mean:
    """The mean of task means; independent intervals add in squares."""
    n = len(tasks)
    return Mean(mean=sum(t.mean for t in tasks) / n, ci95=sqrt(sum(t.ci95**2 for t in tasks)) / n)


def forgetting(before: Sequence[Mapping[int, float]], now: Mapping[int, float]) -> float | None:
    """Mean over earlier tasks of (best accuracy in an earlier session) - (accuracy now); none for the first session.

    Accuracies are given by task. Where a task is better than ever before, its part is negative.
    """
    best: dict[int, float] = {}
    for accuracies in before:
        for task, accuracy in accuracies.items():
            best[task] = max(accuracy, best.get(task, accuracy))
    losses = [best[task] - accuracy for task, accuracy in now.items() if task in best]
    return sum(losses) / len(losses) if losses else None


def accuracy_by_task(tasks: Sequence[OfTask]) -> dict[int, float]:
    return {task.task: task.mean for task in tasks}


def average(sessions: Sequence[Session]) -> Average | None:
    if not sessions:
        return None
    n = len(sessions)
    return Average(meta_test=sum(s.meta_test.mean for s in sessions) / n, seen=sum(s.seen.mean for s in sessions) / n)


class Ledger:
    """Collects what the sessions measured, for each evaluation shape; the first shape is that of training."""

    def __init__(self, config: RunConfig, split_hash: str) -> None:
        self.config, self.split_hash = config, split_hash
        self.sessions: dict[Shape, list[Session]] = {shape: [] for shape in config.evaluation_shapes}

    def add(
        self,
        classes: int,
        accuracies: Mapping[tuple[str, Shape], np.ndarray],
        seconds_train: float,
        seconds_eval: float,
    ) -> list[Session]:
        """Per-episode accuracies of one session, by pool ("unseen" or the number of a task) and shape."""
        for shape, rows in self.sessions.items():
            found = {name: values.tolist() for (name, of), values in accuracies.items() if of == shape}
            unseen = found.pop(UNSEEN)
            tasks = [OfTask(task=int(n), **Mean.of(v).model_dump()) for n, v in found.items()]
            row = Session(
                session=len(rows) + 1,
                classes_seen=classes,
                meta_test=OverEpisodes(**Mean.of(unseen).model_dump(), episodes=len(unseen)),
                seen=mean_over_tasks(tasks),
                per_task=tasks,
                forgetting=forgetting([accuracy_by_task(row.per_task) for row in rows], accuracy_by_task(tasks)),
                seconds_train=seconds_train,
                seconds_eval=seconds_eval,
            )
            rows.append(row)
        return [rows[-1] for rows in self.sessions.values()]

    def results(self, status: str) -> Results:
        config, (training, *others) = self.config, self.sessions
        return Results(
            status=status,
            run=config.run_id,
            method=config.method.name,
            learner=config.learner.name,
            backbone=config.backbone.name,
            dataset=config.data.name,
            tasks=config.stream.tasks,
            shape={"way": config.shape.way, "shots": config.shape.shots, "queries": config.shape.queries},
            seed=config.seed,
            split_hash=self.split_hash,
            scale=config.scale,
            warning=config.seen_before,
            sessions=self.sessions[training],
            average=average(self.sessions[training]),
            evaluations=[
                Evaluation(way=s.way, shots=s.shots, sessions=self.sessions[s], average=average(self.sessions[s]))
                for s in others
            ],
        )

    def to_json(self) -> list[list[dict[str, Any]]]:
        return [[row.model_dump() for row in rows] for rows in self.sessions.values()]

    def restore(self, saved: Sequence[Sequence[Any]]) -> None:
        for shape, rows in zip(self.sessions, saved, strict=True):
            self.sessions[shape] = [Session.model_validate(row) for row in rows]
