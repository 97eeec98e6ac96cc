"""Two runs answered the same questions: how far apart they are, question by question."""

import zlib
from collections.abc import Mapping, Sequence
from zipfile import BadZipFile, ZipFile

import numpy as np

from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.files.door import Folder, Refused
from episodica.records.results import UNSEEN, Mean, mean_over_tasks
from episodica.records.run import EPISODES, episodes_name, load_config, load_results
from episodica.report.aggregate import Line
from episodica.report.cells import Cell, Row, Table
from episodica.report.comparison import METRICS
from episodica.report.discovery import publishable

MOST_EPISODES = 2**28  # bytes of one file, unpacked


def paired(first: Folder, second: Folder, shape: Mapping[str, int]) -> dict[str, Mean]:
    """First minus second on unseen classes and as the mean over seen tasks, as evaluated with a way and shots.

    After the last session that both have, where a bound's only one stands for the last.
    """
    one, two = (load_results(folder) for folder in (first, second))
    configs = [load_config(folder) for folder in (first, second)]
    if one is None or two is None or one.split_hash != two.split_hash:
        raise InputError(f"{first} and {second} are not runs on the same split: their questions differ")
    reached = [len(one.sessions), len(two.sessions)]
    if not any(config.is_bound for config in configs):
        reached = [min(reached)] * 2
    prefix = f"{shape['way']}way-{shape['shots']}shot-"
    ours, theirs = (_accuracies(folder, at, prefix) for folder, at in zip((first, second), reached, strict=True))
    if configs[0].eval != configs[1].eval or ours.keys() != theirs.keys():
        raise InputError(f"{first} and {second} were evaluated with different questions: compare runs of one recipe")
    apart = {name: Mean.of((ours[name] - theirs[name]).tolist()) for name in ours}
    unseen = apart.pop(UNSEEN)
    return {"meta_test": unseen, "seen": mean_over_tasks(list(apart.values()))}


def paired_table(lines: Sequence[Line], reference: Line, where: Mapping[str, Folder], name: str) -> Table | None:
    """Each line against the reference, repeat by repeat, after the last session; none without a pair."""
    shape = reference.runs[0][1].shape
    rows = [
        Row(line.name, (*_repeat(run), *_differences(run, base, where, shape)))
        for line in lines
        if line is not reference and line.setting == reference.setting
        for run, base in _same_repeats(line, reference)
    ]
    title = f"Difference to {reference.name} after the last session, on the same episodes"
    columns = ("order", "seed", *(heading.split(" (")[0] for heading in METRICS.values()))
    return Table(name, title, columns, tuple(rows)) if rows else None


def _repeat(run: RunConfig) -> list[Cell]:
    return [Cell(word=str(run.stream.seed)), Cell(word=str(run.seed))]


def _differences(
    ours: RunConfig, theirs: RunConfig, where: Mapping[str, Folder], shape: Mapping[str, int]
) -> list[Cell]:
    first, second = (where[config.run_id] for config in (ours, theirs))
    if not all(EPISODES in folder.folders() for folder in (first, second)):
        return [Cell(word="episodes not kept")] * len(METRICS)
    try:
        apart = paired(first, second, shape)
    except InputError as error:
        return [Cell(word=f"cannot be paired: {publishable(str(error), first.path, second.path)}"), Cell()]
    return [Cell(100 * apart[m].mean, over_episodes=100 * apart[m].ci95, signed=True) for m in METRICS]


def _same_repeats(line: Line, reference: Line) -> list[tuple[RunConfig, RunConfig]]:
    """The finished runs of a line, each with the reference of its order and seed; a bound may stand for all seeds."""
    done, base = (
        {(c.stream.seed, c.seed): c for c, results in part.runs if results.status == "finished"}
        for part in (line, reference)
    )
    if reference.bound:
        first = {order: base[order, seed] for order, seed in sorted(base, reverse=True)}
        return [(run, base.get(key, first[key[0]])) for key, run in done.items() if key[0] in first]
    return [(run, base[key]) for key, run in done.items() if key in base]


def _accuracies(folder: Folder, session: int, prefix: str) -> Mapping[str, np.ndarray]:
    episodes, name = folder / EPISODES, episodes_name(session)
    path = episodes.path / name
    try:
        with episodes.open(name) as file:
            if sum(packed.file_size for packed in ZipFile(file).infolist()) > MOST_EPISODES:
                raise ValueError(f"more than {MOST_EPISODES:,} bytes")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {name.removeprefix(prefix): arrays[name] for name in arrays.files if name.startswith(prefix)}
    except FileNotFoundError:
        raise InputError(f"{path} is missing: a paired comparison needs the accuracy of each episode") from None
    except Refused:
        raise
    except (OSError, ValueError, EOFError, AttributeError, MemoryError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is damaged ({error}): restore it, or report without this run") from None
