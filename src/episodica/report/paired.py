"""Two runs answered the same questions: how far apart they are, question by question."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from episodica.errors import InputError
from episodica.records.results import UNSEEN, Mean, mean_over_tasks
from episodica.records.run import load_config, load_results


def paired(first: Path, second: Path, session: int | None = None) -> dict[str, Mean]:
    """First minus second after a session (default: the last), on unseen classes and as the mean over seen tasks."""
    one, two = (load_results(folder) for folder in (first, second))
    asked = [load_config(folder / "config.yaml").eval for folder in (first, second)]
    if one is None or two is None or one.split_hash != two.split_hash:
        raise InputError(f"{first} and {second} are not runs on the same split: their questions differ")
    session = session or min(len(one.sessions), len(two.sessions))
    shape = f"{one.shape['way']}way-{one.shape['shots']}shot-"
    ours, theirs = (_accuracies(folder, session, shape) for folder in (first, second))
    if asked[0] != asked[1] or ours.keys() != theirs.keys():
        raise InputError(f"{first} and {second} were examined with different questions: compare runs of one recipe")
    apart = {name: Mean.of((ours[name] - theirs[name]).tolist()) for name in ours}
    unseen = apart.pop(UNSEEN)
    return {"meta_test": unseen, "seen": mean_over_tasks(list(apart.values()))}


def _accuracies(folder: Path, session: int, shape: str) -> Mapping[str, np.ndarray]:
    path = folder / "episodes" / f"session-{session:03d}.npz"
    if not path.exists():
        raise InputError(f"{path} is missing: a paired comparison needs the accuracy of each episode")
    with np.load(path, allow_pickle=False) as arrays:
        return {name.removeprefix(shape): arrays[name] for name in arrays.files if name.startswith(shape)}
