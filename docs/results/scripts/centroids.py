"""Accuracy of runs with raw and with normalised centroids, after the first and after the last session.

python docs/results/scripts/centroids.py DATA RUN...
"""

import sys
from pathlib import Path

from episodica.config import RunConfig, resolve
from episodica.engine.evaluate import examine
from episodica.engine.problem import load_problem
from episodica.engine.run import load_learner
from episodica.records.run import load_config


def accuracies(config: RunConfig, run: Path, session: int) -> tuple[float, float]:
    """Of unseen and of seen classes, in per cent."""
    found = examine(load_learner(run, session), load_problem(config), session - 1)
    means = {name: 100 * values.double().mean().item() for name, _, values in found}
    unseen = means.pop("unseen")
    return unseen, sum(means.values()) / len(means)


def main(data: str, *runs: str) -> None:
    for run in map(Path, runs):
        tree = load_config(run / "config.yaml").tree()
        tree["data"]["root"] = data
        for session in (1, tree["stream"]["tasks"]):
            for centroids in ("raw", "normalised"):
                tree["eval"]["centroids"] = centroids
                unseen, seen = accuracies(resolve(tree), run, session)
                print(
                    f"{run.name:22} session {session:2}  {centroids:10}  unseen {unseen:.1f}  seen {seen:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
