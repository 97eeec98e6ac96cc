"""Accuracy of runs with raw and with normalised centroids, after the first and after the last session.

python docs/results/scripts/centroids.py DATA RUN...
"""

import sys
from pathlib import Path

from accuracy import accuracies, config_of
from episodica.engine.experiment import load_experiment
from episodica.engine.run import load_learner


def main(data: str, *runs: str) -> None:
    for run in map(Path, runs):
        for session in (1, config_of(run, data).stream.tasks):
            for centroids in ("raw", "normalised"):
                experiment = load_experiment(config_of(run, data, centroids=centroids))
                unseen, seen = accuracies(load_learner(run, session), experiment, session - 1)
                print(
                    f"{run.name:22} session {session:2}  {centroids:10}  unseen {unseen:.1f}  seen {seen:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
