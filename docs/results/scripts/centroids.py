"""Examine runs with raw and with normalised centroids, without and with mirror images, and train nothing anew: writes
centroids.json into their folders.

python docs/results/scripts/centroids.py DATA RUN...

RUN is a run folder with its checkpoints; the sessions are the first and those that tables show.
"""

import json
import sys
from itertools import product
from pathlib import Path

from accuracy import accuracies, config_of
from episodica.engine.experiment import load_experiment
from episodica.engine.run import load_learner
from episodica.report.comparison import shown_sessions


def main(data: str, *runs: str) -> None:
    for run in map(Path, runs):
        config, found = config_of(run, data), {}
        sessions = [1] if config.is_bound else sorted({1, *shown_sessions(config.stream.learned)})
        for centroids, mirrored in product(("raw", "normalised"), (False, True)):
            experiment = load_experiment(config_of(run, data, centroids=centroids, mirrored=mirrored))
            means = [accuracies(load_learner(run, session), experiment, session - 1) for session in sessions]
            found[f"{centroids}, mirrored" if mirrored else centroids] = [
                {"session": session, "meta_test": round(unseen / 100, 6), "seen": round(seen / 100, 6)}
                for session, (unseen, seen) in zip(sessions, means, strict=True)
            ]
        (run / "centroids.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
