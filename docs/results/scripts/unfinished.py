"""Accuracy of unfinished runs, with the weights of their last checkpoint, after the tasks trained on so far.

python docs/results/scripts/unfinished.py DATA RUN...
"""

import sys
from pathlib import Path

import torch

from accuracy import accuracies, config_of
from episodica.engine.checkpoint import Checkpoints, restore_module
from episodica.engine.experiment import load_experiment, new_learner
from episodica.files.door import Folder


def main(data: str, *runs: str) -> None:
    for run in map(Path, runs):
        config = config_of(run, data)
        checkpoints = Checkpoints(Folder(run) / "checkpoints")
        progress = checkpoints.latest()
        if progress is None:
            sys.exit(f"{run} has no checkpoint yet")
        learner = new_learner(config, torch.device("cpu"))
        restore_module("learner", learner, checkpoints.tensors(progress))
        unseen, seen = accuracies(learner.eval(), load_experiment(config), progress.session)
        where = f"session {progress.session + 1:2}, step {progress.step:6}"
        print(f"{run.name:22} {where}  unseen {unseen:.1f}  seen {seen:.1f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
