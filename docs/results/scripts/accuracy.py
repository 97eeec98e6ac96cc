"""What the scripts beside this one measure and read."""

from pathlib import Path

from episodica.config import RunConfig, resolve
from episodica.engine.evaluate import evaluate_session
from episodica.engine.experiment import Experiment
from episodica.files.door import Folder
from episodica.learners.learner import Learner
from episodica.records.run import load_config


def accuracies(learner: Learner, experiment: Experiment, session: int) -> tuple[float, float]:
    """Of unseen classes and of the tasks up to a session (counted from 0), in per cent."""
    means = {
        name: 100 * values.double().mean().item() for name, _, values in evaluate_session(learner, experiment, session)
    }
    unseen = means.pop("unseen")
    return unseen, sum(means.values()) / len(means)


def config_of(run: Path, data: str, **evaluation: str | bool) -> RunConfig:
    """A run's config with the data where it is now, and other settings of the evaluation where wanted."""
    tree = load_config(Folder(run)).tree()
    tree["data"]["root"] = data
    tree["eval"] |= evaluation
    return resolve(tree)
