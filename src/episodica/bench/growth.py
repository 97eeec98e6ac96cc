"""A long stream: the cost of a step and the memory in use, session after session."""

from collections.abc import Iterator, Mapping
from mmap import PAGESIZE
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from episodica.bench.section import Section
from episodica.bench.timing import Effort, Row
from episodica.bench.workload import CPU, noise
from episodica.config import RunConfig, resolve
from episodica.data.splits import make_split
from episodica.data.stream import TaskStream
from episodica.engine.experiment import Experiment
from episodica.engine.trainer import Trainer
from episodica.records.run import RunFolder

TASKS, STEPS, SIZE = 200, 5, 16
UNSEEN, TEST, TRAIN = 2, 4, 20  # classes; images of each
METHODS: Mapping[str, dict[str, Any]] = {"FT": {"name": "ft"}, "ERD": {"name": "erd", "p": 0.5}}
MEGABYTE = 2**20


def growth(effort: Effort) -> Iterator[Section]:
    """Always a wall clock and one round: what is compared are sessions of one run."""
    for name, method in METHODS.items():
        yield _section(name, _experiment(method))


def _experiment(method: dict[str, Any]) -> Experiment:
    """Two-way episodes, so that every session but the first has classes for them."""
    classes, per_class = 2 * TASKS + UNSEEN, TEST + TRAIN
    config = resolve(
        {
            "stream": {"tasks": TASKS},
            "shape": {"way": 2, "queries": 5},
            "method": method,
            "augment": {"size": SIZE},
            "train": {"epochs": 1, "episodes": STEPS, "log_every": STEPS},
            "eval": {"episodes": 2, "queries": 3},
        }
    )
    labels = np.repeat(np.arange(classes), per_class)
    split = make_split(labels, tasks=TASKS, order="natural", seed=0, test_per_class=TEST, unseen=UNSEEN)
    # Only the first task is evaluated: answering for every task seen costs more with every task, as it should.
    stream = TaskStream.of(split)
    stream = TaskStream(stream.train, stream.lengths, stream.test[:1], stream.unseen)
    return Experiment(config, noise(len(labels), SIZE), split, stream, tuple(map(str, range(classes))), CPU)


def _section(name: str, experiment: Experiment) -> Section:
    ms, megabytes = sessions(experiment)
    later = ms[1:]  # the first session has no past
    tenth = max(1, len(later) // 10)
    first, last = (median(part) for part in (later[:tenth], later[-tenth:]))
    rows = [
        Row("step, first tenth of the sessions", first, 1.0, None, later[:tenth]),
        Row("step, last tenth of the sessions", last, first / last, None, later[-tenth:]),
    ]
    store = len(experiment.store) * 3 * SIZE**2 / MEGABYTE
    notes = [f"{exemplars(experiment.config):,} exemplars are kept at the end, as rows of the store ({store:.0f} MB)"]
    series = {"ms of a step by session": ms}
    if megabytes:
        series["resident MB by session"] = megabytes
        begun, ended = (f"{megabytes[session]:.0f} MB after session {session + 1}" for session in (tenth, len(ms) - 1))
        notes.append(f"the process holds {begun} and {ended}")
    return Section(f"Growth, {name}, {len(ms)} tasks", rows, notes, series)


def exemplars(config: RunConfig) -> int:
    """Kept at the end; a method that does not replay keeps none."""
    per_class = min(config.memory_rules.per_class or TRAIN, TRAIN)
    return 2 * TASKS * per_class if config.replays else 0


def sessions(experiment: Experiment) -> tuple[list[float], list[float]]:
    """Milliseconds of a step, and megabytes in use at the end, of every session."""
    ms, megabytes = [], []

    def on_event(event: Mapping[str, Any]) -> None:
        if event["event"] == "result":
            ms.append(1e3 * event["seconds_train"] / event["steps"])
            megabytes.extend(resident())

    with TemporaryDirectory() as out, RunFolder(Path(out), experiment.config) as folder:
        trainer = Trainer(experiment, folder, on_event, lambda: False)
        trainer.accelerate(lambda text: None)
        trainer.run()
    return ms, megabytes


def resident() -> list[float]:
    """Megabytes that this process holds; nothing where the system does not say."""
    statm = Path("/proc/self/statm")
    return [int(statm.read_text().split()[1]) * PAGESIZE / MEGABYTE] if statm.exists() else []
