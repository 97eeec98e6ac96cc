"""Learning in depth from the page: what it takes, and what it does."""

from collections.abc import Callable
from http import HTTPStatus

from episodica.classifier.adaptation import LEAST
from episodica.classifier.exact_state import ExactState
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import ModelState
from episodica.serve.description import TRAINED
from episodica.serve.job import OnEvent
from episodica.serve.messages import JobInfo
from episodica.serve.uploads import Refusal
from episodica.serve.worker import Snapshot


def require_adaptable(now: Snapshot, job: JobInfo | None) -> None:
    """Refuse in a sentence what would only fail later."""
    if job and job.state == "running":
        raise Refusal(HTTPStatus.CONFLICT, "something is learned in depth already: wait for it, or stop it")
    state = now.state
    if not isinstance(state, ExactState):
        raise Refusal(HTTPStatus.CONFLICT, TRAINED)
    several = sum(len(of_class) > 1 for of_class in state.statistics.classes.values())
    if several < LEAST:
        sentence = f"it takes {LEAST} classes with two images or more, and the model has {several}"
        raise Refusal(HTTPStatus.CONFLICT, sentence)


def in_depth(folder: ModelFolder, on_event: OnEvent, stop: Callable[[], bool], who: str) -> ModelState:
    from episodica.classifier.in_depth import learn_in_depth  # loads torch, which answering may do without

    return learn_in_depth(folder, on_event, stop, who)
