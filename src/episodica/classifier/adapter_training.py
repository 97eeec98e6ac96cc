"""Training an adapter over the points of a model, by the engine's loop: one session of ERD.

The classes of the call are the task, and those of earlier calls are replayed. All points of all classes are there, so
earlier classes take part with every image that they ever had, and none of these images need be kept.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from episodica.classifier.adapter import PointAdapter
from episodica.config import RunConfig, resolve
from episodica.config.flat import nest
from episodica.data.splits import Split
from episodica.data.stream import TaskStream
from episodica.engine.checkpoint import module_tensors
from episodica.engine.experiment import Embedded, Experiment, new_learner
from episodica.engine.run import train_to_the_end
from episodica.engine.trainer import OnEvent, Start
from episodica.files.door import Folder
from episodica.learners.statistics import UNIT
from episodica.memory import Kept
from episodica.models.adapter import Adapter
from episodica.records.run import RunFolder

STEPS, RATE = 200, 1e-4  # chosen on birds, glyphs, CIFAR-100 and photographs: see docs/learn.md
WAY, SHOTS, QUERIES = 8, 5, 5  # at most
LEAST = 2  # classes to train on

Classes = Mapping[str, np.ndarray]  # the points of each class. int16 [n, D]


@dataclass(frozen=True, eq=False)
class Training:
    """Where it happens and who watches."""

    work: Folder
    on_event: OnEvent
    stop: Callable[[], bool]

    def __call__(
        self, classes: Classes, past: Collection[str] = (), start: PointAdapter | None = None, seed: int = 0
    ) -> PointAdapter | None:
        """Of these classes, of which some are `past` and known to the adapter that it starts from.

        None where they are too few, or too small to be told apart by examples and questions.
        """
        chosen = _large_enough(classes)
        past = [name for name in chosen if name in past and start is not None]
        new = [name for name in chosen if name not in past]
        if not new:  # everything is known: all of it is the task
            past, new = [], past
        if len(chosen) < LEAST:
            return None
        names = [*past, *new]
        sizes = [len(chosen[name]) for name in names]
        rows = {c: of_class.tolist() for c, of_class in enumerate(torch.arange(sum(sizes)).split(sizes))}
        tasks = [{c: rows[c] for c in range(len(past))}, {c: rows[c] for c in range(len(past), len(names))}]
        split = Split(train=tuple(task for task in tasks if task), test=(), unseen={}, fingerprint="")
        over = Embedded(torch.from_numpy(np.concatenate([chosen[name] for name in names])).float() * UNIT)
        config = _config(len(new), len(past), min(map(len, chosen.values())), seed)
        device = torch.device("cpu")
        experiment = Experiment(config, over.store, split, TaskStream.of(split), tuple(names), device, over)
        with RunFolder(self.work, config) as run:
            begin = Start(_weights(config, over, start), {c: Kept(rows[c], None) for c in range(len(past))})
            trainer = train_to_the_end(experiment, run, self._progress, self.stop, begin)
        self.work.remove_tree(config.run_id)
        backbone = trainer.learner.backbone
        assert isinstance(backbone, Adapter)
        return PointAdapter(backbone.layer.change.weight.detach().half().numpy())

    def _progress(self, event: Mapping[str, Any]) -> None:
        """What a run says of its episodes is nothing that a user could change here."""
        if event["event"] != "notice":
            self.on_event(event)


class AsOne:
    """Progress of several trainings, one after another, as if they were one: how long all of them take is told."""

    def __init__(self, on_event: OnEvent, trainings: int) -> None:
        self._on_event, self._trainings, self._begun = on_event, trainings, 0

    def __call__(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "session":
            self._begun += 1
        if event["event"] in ("session", "step"):
            steps = event["steps"]
            done = (self._begun - 1) * steps + event.get("step", 0)
            event = {**event, "step": done, "steps": self._trainings * steps}
        self._on_event(event)


def _large_enough(classes: Classes) -> Classes:
    """Without those that have less than half of what is usual: every episode would shrink to the smallest."""
    needed = max(2, ceil(min(SHOTS + QUERIES, median(map(len, classes.values()))) / 2)) if classes else 0
    return {name: points for name, points in classes.items() if len(points) >= needed}


def _config(new: int, past: int, fewest: int, seed: int) -> RunConfig:
    way = min(WAY, new + past)
    shots = min(SHOTS, max(1, fewest // 2))
    alone = {"method.lambda_e": 0} if past == 1 else {}  # an exemplar episode takes two classes
    return resolve(
        nest(
            {
                "data.name": "folder",
                "data.size": 32,
                "learner.name": "whitened",
                "method.name": "erd",
                "method.p": min(way - 1, max(1, way - new)) / way,
                **alone,
                "memory.per_class": 10_000,
                "augment.crop": "none",
                "augment.flip": False,
                "augment.brightness": 0,
                "augment.contrast": 0,
                "augment.colour": 0,
                "shape.way": way,
                "shape.shots": shots,
                "shape.queries": min(QUERIES, fewest - shots),
                "train.epochs": 1,
                "train.episodes": STEPS,
                "train.lr": RATE,
                "seed": seed,
            }
        )
    )


def _weights(config: RunConfig, over: Embedded, start: PointAdapter | None) -> dict[str, Tensor]:
    """Of a learner over the adapter that it starts from."""
    learner = new_learner(config, torch.device("cpu"), over=over)
    if start is not None:
        backbone = learner.backbone
        assert isinstance(backbone, Adapter)
        with torch.no_grad():
            backbone.layer.change.weight.copy_(torch.from_numpy(start.change.astype(np.float32)))
    return module_tensors("learner", learner)
