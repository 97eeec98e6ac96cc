"""Whether a model that is there should look at earlier blocks of its encoder, too: its images are embedded again.

Only images that are kept can be, so all of them must be. A first call to `learn` decides the same for its own images.
"""

from collections.abc import Callable

import numpy as np

from episodica.classifier.adaptation import compared, earlier_blocks_in_words
from episodica.classifier.exact_state import ExactState
from episodica.classifier.images import pixels
from episodica.classifier.model_folder import ModelFolder
from episodica.engine.image_encoder import ImageEncoder
from episodica.engine.trainer import OnEvent
from episodica.errors import Interrupted
from episodica.learners.statistics import Statistics, points, rounded

NONE = "this encoder has no earlier blocks to look at"
GONE = "earlier blocks of the encoder were not tried, because the model keeps {} of its {} images"


def looking_deeper(folder: ModelFolder, state: ExactState, on_event: OnEvent, stop: Callable[[], bool]) -> ExactState:
    """The state by all blocks but the first ones where that is better beyond chance; else the state as it is."""
    if state.record.encoder.depths > 1:
        return state
    kept, came = (sum(of(stored) for stored in state.classes) for of in (lambda s: len(s.images), state.images_of))
    if kept < came:
        on_event({"event": "notice", "text": GONE.format(kept, came)})
        return state
    config = state.config
    record = folder.encoders.prepare(config, deep=True, complete=state.record.encoder.included)
    encoder = folder.encoders.load(record, config)
    if not encoder.widths:
        on_event({"event": "notice", "text": NONE})
        return state
    vectors = _embedded_again(folder, state, encoder, on_event, stop)
    on_event({"event": "measuring"})
    deep = {name: points(of_class) for name, of_class in vectors.items()}
    last_block = {name: rounded(of_class[:, -encoder.widths[-1] :]) for name, of_class in vectors.items()}
    found = compared(last_block, deep)
    on_event({"event": "notice", "text": earlier_blocks_in_words(found, record.depths)})
    if found is None or not found.better:
        return state
    unique = {name: np.unique(of_class, axis=0) for name, of_class in deep.items()}
    linked = {d: p for stored in state.classes for d, p in zip(stored.images, deep[stored.name], strict=True)}
    adapted = state.record.model_copy(update={"encoder": record, "adapt": "auto"})
    return ExactState.of(adapted, Statistics.of(unique, sum(encoder.widths)), folder.encoders, linked)


def _embedded_again(
    folder: ModelFolder, state: ExactState, encoder: ImageEncoder, on_event: OnEvent, stop: Callable[[], bool]
) -> dict[str, np.ndarray]:
    """Of each class. [n, D]"""
    found, total, done = {}, sum(len(stored.images) for stored in state.classes), 0
    for stored in state.classes:
        vectors = []
        for digest in stored.images:
            if stop():
                raise Interrupted
            vectors.append(encoder.embed_pixels(pixels(folder.vault.read(digest), encoder.size)[None]))
            done += 1
            on_event({"event": "reading", "what": "looking at images", "done": done, "total": total})
        found[stored.name] = np.concatenate(vectors)
    return found
