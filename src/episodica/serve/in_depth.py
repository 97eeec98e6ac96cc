"""Learning in depth from the page: earlier blocks of the encoder are looked at too, if that is better (`--adapt auto`).

Every image is looked at again, so all of them must be kept. The model is changed only if what was found is better on
images and on classes that were left out, beyond chance.
"""

from collections.abc import Callable
from http import HTTPStatus

import numpy as np

from episodica.classifier.adaptation import LEAST, compared, earlier_blocks_in_words
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import Draft
from episodica.classifier.images import pixels
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import ModelState
from episodica.errors import InputError, Interrupted
from episodica.learners.statistics import Statistics, points, rounded
from episodica.serve.description import TRAINED
from episodica.serve.job import OnEvent
from episodica.serve.messages import JobInfo
from episodica.serve.uploads import Refusal
from episodica.serve.worker import Snapshot


def require_adaptable(now: Snapshot, job: JobInfo | None) -> None:
    """Refuse in a sentence what would only fail later."""
    if job and job.state == "running":
        raise Refusal(HTTPStatus.CONFLICT, "something is learned in depth already: wait for it, or stop it")
    why = _why_not(now.state)
    if why:
        raise Refusal(HTTPStatus.CONFLICT, why)


def _why_not(state: ModelState) -> str | None:
    if not isinstance(state, ExactState):
        return TRAINED
    if state.record.encoder.depths > 1:
        return "earlier blocks of the encoder are looked at already"
    several = [name for name, of_class in state.statistics.classes.items() if len(of_class) > 1]
    if len(several) < LEAST:
        return f"it takes {LEAST} classes with two images or more, and the model has {len(several)}"
    if any(len(stored.images) < state.images_of(stored) for stored in state.classes):
        return "the model does not keep all images that it was taught with, so they cannot be looked at again"
    return None


def in_depth(folder: ModelFolder, on_event: OnEvent, stop: Callable[[], bool], who: str) -> ModelState:
    with folder.writing():
        state = folder.state()
        why = _why_not(state)
        if why or not isinstance(state, ExactState):
            raise InputError(why or TRAINED)
        config, most = state.config, sum(len(stored.images) for stored in state.classes)
        record = folder.encoders.prepare(config, deep=True, complete=state.record.encoder.included)
        encoder = folder.encoders.load(record, config)
        if not encoder.widths:
            on_event({"event": "notice", "text": "This encoder has no earlier blocks to look at."})
            return state
        found: dict[str, np.ndarray] = {}
        done = 0
        for stored in state.classes:
            vectors = []
            for digest in stored.images:
                if stop():
                    raise Interrupted
                square = pixels(folder.vault.read(digest), config.image_size)
                vectors.append(encoder.embed_pixels(square[None]))
                done += 1
                on_event({"event": "reading", "what": "looking at images", "done": done, "total": most})
            found[stored.name] = np.concatenate(vectors)
        on_event({"event": "measuring"})
        deep = {name: points(of_class) for name, of_class in found.items()}
        shallow = {name: rounded(of_class[:, -encoder.widths[-1] :]) for name, of_class in found.items()}
        comparison = compared(shallow, deep)
        on_event({"event": "notice", "text": earlier_blocks_in_words(comparison, record.depths)})
        if comparison is None or not comparison.better:
            return state
        if stop():
            raise Interrupted
        unique = {name: np.unique(of_class, axis=0) for name, of_class in deep.items()}
        kept = {d: p for stored in state.classes for d, p in zip(stored.images, deep[stored.name], strict=True)}
        adapted = state.record.model_copy(update={"encoder": record, "adapt": "auto"})
        known = Statistics.of(unique, sum(encoder.widths))
        draft = Draft("adapt", tuple(state.record.names), images=most, who=who)
        return folder.commit(ExactState.of(adapted, known, folder.encoders, kept), draft)
