"""Learning in depth, for a model that is there: what `--adapt auto` does for images that come.

Earlier blocks of the encoder and an adapter are tried, and what is better on images and on classes that were left out
is kept. One change, or none.
"""

from collections.abc import Callable

from episodica.classifier.earlier_blocks import looking_deeper
from episodica.classifier.exact_adapt import FROZEN_ONLY, adapting
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import COMMAND, Draft
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import ModelState
from episodica.engine.device import computing
from episodica.engine.trainer import OnEvent
from episodica.errors import InputError, Interrupted

LEFT_OUT = "the adapter that the model had is left out again"


def learn_in_depth(
    folder: ModelFolder, on_event: OnEvent, stop: Callable[[], bool] = lambda: False, who: str = COMMAND
) -> ModelState:
    """Notices say what was measured, and whether it was kept. Where nothing is, the model is what it was; where `stop`
    says so, too, and `Interrupted` is raised."""
    with folder.writing(), computing(None):
        before = folder.state()
        if not isinstance(before, ExactState):
            raise InputError(FROZEN_ONLY)
        state = looking_deeper(folder, before, on_event, stop)
        state = adapting(folder, state, {}, "auto", on_event, stop)
        if stop():
            raise Interrupted
        if before.has_adapter and not state.has_adapter:
            on_event({"event": "notice", "text": LEFT_OUT})
        if state.record.encoder == before.record.encoder:
            return before
        return folder.commit(state, Draft("adapt", who=who))
