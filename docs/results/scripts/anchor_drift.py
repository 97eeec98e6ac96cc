"""How far the class means of a run have moved since their session, and whether they still point the same way.

python docs/results/scripts/anchor_drift.py DATA RUN...
"""

import sys
from pathlib import Path

import torch
from torch import Tensor

from accuracy import config_of
from episodica.engine.embedder import embed_all
from episodica.engine.experiment import Experiment, load_experiment
from episodica.engine.run import load_learner
from episodica.learners.learner import Learner

IMAGES = 100  # of a class


def class_means(experiment: Experiment, learner: Learner, session: int) -> Tensor:
    """[classes of the session, D]"""
    images = experiment.stream.train[session - 1].by_class().values()
    return torch.stack([embed_all(learner, rows[:IMAGES], experiment.pixels).mean(0) for rows in images])


def main(data: str, *runs: str) -> None:
    for run in map(Path, runs):
        experiment, last = load_experiment(config_of(run, data)), load_learner(run)
        for session in (1, 4, 8, 12, 15):
            then, now = (class_means(experiment, one, session) for one in (load_learner(run, session), last))
            before, after = then - then.mean(0), now - now.mean(0)
            moved = (then - now).norm(dim=1).mean() / after.norm(dim=1).mean()
            alike = torch.cosine_similarity(before, after).mean()
            print(f"{run.name:22} session {session:2}  moved {moved:.1f} spreads  cosine {alike:.2f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
