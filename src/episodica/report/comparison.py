"""What makes runs comparable: their names beside each other, their common setting, their bound, the sessions shown."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from episodica.config import NOT_IN_THE_NUMBERS, RunConfig
from episodica.config.flat import flatten
from episodica.records.results import Results

Run = tuple[RunConfig, Results]
METRICS = {"meta_test": "unseen classes (meta-test)", "seen": "seen classes (mean of the tasks)"}
REPEATS = ("seed", "stream.seed")  # what repeats a run without changing what it is
COLUMNS = 6  # sessions shown at most; longer streams show the powers of two and the last, as the paper does
PLAIN = 2  # fields that a name spells out whatever their value


def shown_sessions(tasks: int) -> list[int]:
    if tasks <= COLUMNS:
        return list(range(1, tasks + 1))
    return [s for s in range(2, tasks + 1) if s & (s - 1) == 0 or s == tasks]


def setting(config: RunConfig) -> dict[str, Any]:
    """What a run and its bound have in common, whatever seed and order they repeat it with."""
    ignored = (
        "method.",
        "memory.",
        "stream.merged",
        "train.consolidate",
        "train.episodes_per_step",
        *REPEATS,
        *NOT_IN_THE_NUMBERS,
    )
    return {path: value for path, value in flatten(config.tree()).items() if not path.startswith(ignored)}


def unseen_setting(config: RunConfig) -> dict[str, Any]:
    """What a run and the bound of its unseen accuracy have in common.

    A bound merges the tasks, so on unseen classes it bounds every stream of these classes that takes as many steps in
    all, in however many tasks: the paper has one bound for its streams of 4 and of 16.
    """
    of_the_stream = ("stream.tasks", "train.episodes", "eval.episodes")
    common = {path: value for path, value in setting(config).items() if path not in of_the_stream}
    return common | {"steps": config.stream.learned * config.episodes_of_a_task}


def identity(config: RunConfig) -> dict[str, Any]:
    """All that decides the numbers but for the repeats."""
    return {path: value for path, value in flatten(config.decisive()).items() if path not in REPEATS}


def labels(configs: Sequence[RunConfig]) -> dict[str, str]:
    """A short name for each run: its method and, where a method occurs more than once, what sets the runs apart.

    What is off or not set goes without saying and, where many fields differ, whatever has its default value.
    """
    trees = {config.run_id: flatten(config.decisive()) for config in configs}
    methods = {config.run_id: config.method.name for config in configs}
    named = {}
    for config in configs:
        own, chosen = trees[config.run_id], flatten(config.chosen())
        peers = [tree for other, tree in trees.items() if methods[other] == config.method.name]
        apart = [path for path in own if any(peer.get(path) != own[path] for peer in peers)]
        short = Counter(path.split(".")[-1] for path in apart)
        said = [path for path in apart if own[path] is not False and own[path] is not None]
        shown = [path for path in apart if path in chosen or (len(apart) <= PLAIN and path in said)]
        keys = {path: key if short[key := path.split(".")[-1]] == 1 else path for path in shown}
        named[config.run_id] = " ".join([config.method.name, *(f"{key}={own[path]}" for path, key in keys.items())])
    return named


def by_evaluation(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs as they were evaluated with each way and number of shots, that of training first."""
    shapes: dict[tuple[int, int], list[Run]] = {}
    for config, results in runs:
        for one in results.each_evaluation():
            shapes.setdefault((one.shape["way"], one.shape["shots"]), []).append((config, one))
    return list(shapes.values())
