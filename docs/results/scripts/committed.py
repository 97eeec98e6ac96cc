"""The runs whose results are committed, by group: `runs/GROUP/` holds a config and results for each run, `about.yaml`
with the commands that made them and, where the accuracy of every episode was at hand, `paired.json`. Newer runs have
that accuracy with them, in `episodes/`. A run keeps the id that it had when it ran, whatever has become a default
since."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import hypot
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from episodica.config import RunConfig, resolve
from episodica.config.flat import flatten, nest
from episodica.files.door import Folder
from episodica.records.results import Mean, Results
from episodica.records.run import load_config, load_results

RESULTS = Path(__file__).parents[1]
RUNS = RESULTS / "runs"
METRICS = ("meta_test", "seen")
OF_METHOD = ("method.", "memory.", "stream.merged", "train.consolidate", "train.episodes_per_step")

Run = tuple[RunConfig, Results]


class Difference(NamedTuple):
    """First minus second after the last session that both have, as fractions; paired: episode by episode."""

    mean: float
    ci95: float
    paired: bool


@dataclass(frozen=True, eq=False)
class Group:
    name: str
    command: str
    runs: tuple[Run, ...]
    paired: dict[tuple[str, str], dict[str, Mean]]

    @classmethod
    @cache
    def read(cls, name: str) -> "Group":
        folder = RUNS / name
        about = yaml.safe_load((folder / "about.yaml").read_text())
        kept = [Folder(path.parent) for path in sorted(folder.glob("*/config.yaml"))]
        found = [(load_config(run), load_results(run)) for run in kept]
        record = folder / "paired.json"
        return cls(
            name,
            about["command"].strip(),
            tuple((config, results) for config, results in found if results is not None and results.sessions),
            read_paired(record) if record.exists() else {},
        )

    @property
    def minutes(self) -> float:
        """Of training and evaluation together, summed over the runs, each of which had one thread."""
        sessions = [session for _, results in self.runs for session in results.sessions]
        return sum(session.seconds_train + session.seconds_eval for session in sessions) / 60

    def difference(self, first: Run, second: Run, metric: str) -> Difference:
        """In a metric of `at_the_end`. Where the episodes were not kept, the interval is that of independent ones: too
        wide, never too narrow, because questions that are hard for one method are hard for the other."""
        one, two = first[1].run, second[1].run
        for pair, sign in (((one, two), 1), ((two, one), -1)):
            if pair in self.paired and metric in METRICS:
                known = self.paired[pair][metric]
                return Difference(sign * known.mean, known.ci95, paired=True)
        ours, theirs = (at_the_end(run, other, metric) for run, other in ((first, second), (second, first)))
        return Difference(ours.mean - theirs.mean, hypot(ours.ci95, theirs.ci95), paired=False)


def at_the_end(run: Run, other: Run | None, metric: str) -> Mean:
    """After the last session that both have; the only one of a bound stands for the last.

    Beside the two accuracies: `average_meta_test` and `average_seen` over all sessions, `forgetting`, and `growth`, by
    which the last accuracy on unseen classes is above the first. An average has the interval of a session, because all
    sessions are asked the same questions; forgetting has none.
    """
    config, results = run
    sessions = results.sessions
    if other is not None and not (config.is_bound or other[0].is_bound):
        sessions = sessions[: len(other[1].sessions)]
    last = sessions[-1]
    if metric == "growth":
        first = sessions[0].meta_test
        return Mean(mean=last.meta_test.mean - first.mean, ci95=hypot(last.meta_test.ci95, first.ci95))
    if metric == "forgetting":
        assert last.forgetting is not None, "nothing is forgotten in the first session"
        return Mean(mean=last.forgetting, ci95=0)
    if metric.startswith("average_"):
        name = metric.removeprefix("average_")
        rows = [getattr(one, name) for one in sessions]
        mean, width = (sum(values) / len(rows) for values in zip(*((row.mean, row.ci95) for row in rows), strict=True))
        return Mean(mean=mean, ci95=width)
    return getattr(last, metric)


def matching(runs: Sequence[Run], asked: Mapping[str, Any], where: Mapping[str, Any]) -> list[Run]:
    """Runs of a method with these fields and, for the rest of method and memory, the defaults."""
    usual = {
        path: value for path, value in flatten(resolve(nest(dict(asked))).tree()).items() if path.startswith(OF_METHOD)
    }
    wanted = usual | dict(where)
    trees = [(run, flatten(run[0].tree())) for run in runs]
    return [run for run, tree in trees if all(tree.get(path) == value for path, value in wanted.items())]


def read_paired(path: Path) -> dict[tuple[str, str], dict[str, Mean]]:
    entries = json.loads(path.read_text())
    return {(e["first"], e["second"]): {m: Mean(mean=e[m][0], ci95=e[m][1]) for m in METRICS} for e in entries}


def write_paired(path: Path, found: dict[tuple[str, str], dict[str, Mean]]) -> None:
    lines = [
        json.dumps({"first": one, "second": two} | {m: [round(v[m].mean, 6), round(v[m].ci95, 6)] for m in METRICS})
        for (one, two), v in sorted(found.items())
    ]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def groups() -> list[Group]:
    return [Group.read(path.parent.name) for path in sorted(RUNS.glob("*/about.yaml"))]
