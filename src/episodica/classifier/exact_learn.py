"""Learning without training: every image becomes a point, and the points of each class are added to what is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from episodica.classifier.adaptation import compared, earlier_blocks_in_words
from episodica.classifier.exact_adapt import adapting
from episodica.classifier.exact_plan import ExactCall
from episodica.classifier.exact_state import ExactRecord, ExactState
from episodica.classifier.history import Draft, now
from episodica.classifier.images import pixels
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.new_model import nothing_known
from episodica.classifier.state import ModelState, Step, StoredClass
from episodica.data.decode import Encoded
from episodica.engine.device import computing
from episodica.engine.image_encoder import ImageEncoder
from episodica.engine.trainer import OnEvent
from episodica.errors import InputError, Interrupted, listed
from episodica.learners.statistics import Statistics, points, rounded


@dataclass(frozen=True, eq=False)
class Arrived:
    """The images of a class that could be read, and their embeddings. [n, D]"""

    images: Sequence[Encoded]
    vectors: np.ndarray


def learn_exactly(folder: ModelFolder, call: ExactCall, on_event: OnEvent, stop: Callable[[], bool]) -> ModelState:
    """Embed, add up, measure, and make the result the model's present state. For the writer of the folder only."""
    with computing(call.threads):
        before = call.state or _nothing_known(folder, call)
        encoder = folder.encoders.load(before.record.encoder, call.config)
        arrived = _embedded(encoder, call, on_event, stop)
        on_event({"event": "measuring"})
        step = Step(what="learn", when=now(), classes=tuple(arrived), settings={"encoder": before.record.encoder.name})
        new = {name: points(of_class.vectors) for name, of_class in arrived.items()}
        if call.adapt == "auto" and encoder.widths and not before.classes:
            before, new = _chosen(before, new, _of_last_block(arrived, encoder.widths[-1]), on_event)
        before = adapting(folder, before, new, call.adapt, on_event, stop)
        classes, kept = _classes(folder, call, before.classes, arrived, new)
        state = before.learning(new, classes, step, {"keep": call.keep, "budget": call.budget}, kept)
        return folder.commit(state, Draft("learn", tuple(arrived), images=sum(map(len, new.values()))))


def _nothing_known(folder: ModelFolder, call: ExactCall) -> ExactState:
    """A model with an encoder and without any class."""
    if call.base:
        encoder = folder.encoders.copy(call.base.record.encoder, call.base.encoders)
    else:
        encoder = folder.encoders.add(call.config, complete=call.complete, deep=call.adapt == "auto")
    record = ExactRecord(config=call.config.tree(), sessions=0, classes=(), encoder=encoder, adapt=call.adapt)
    return nothing_known(record, folder.encoders, call.config)


def _of_last_block(arrived: Mapping[str, Arrived], width: int) -> dict[str, np.ndarray]:
    """The points that they have where the last block alone is looked at: the end of every embedding."""
    return {name: rounded(of_class.vectors[:, -width:]) for name, of_class in arrived.items()}


def _chosen(
    adapted: ExactState, points: dict[str, np.ndarray], of_last_block: dict[str, np.ndarray], on_event: OnEvent
) -> tuple[ExactState, dict[str, np.ndarray]]:
    """The model without any class, and the points to learn: of many blocks only if they are better beyond chance."""
    found = compared(of_last_block, points)
    on_event({"event": "notice", "text": earlier_blocks_in_words(found, adapted.record.encoder.depths)})
    if found and found.better:
        return adapted, points
    encoder = adapted.record.encoder.model_copy(update={"depths": 1})
    (width,) = {found.shape[1] for found in of_last_block.values()}
    record = adapted.record.model_copy(update={"encoder": encoder})
    return ExactState.of(record, Statistics.none(width), adapted.encoders), of_last_block


def _embedded(
    encoder: ImageEncoder, call: ExactCall, on_event: OnEvent, stop: Callable[[], bool]
) -> dict[str, Arrived]:
    images = [image for of_class in call.arriving.values() for image in of_class]

    def on_progress(done: int, total: int) -> None:
        if stop():
            raise Interrupted
        on_event({"event": "reading", "what": "looking at images", "done": done, "total": total})

    found = encoder.embed(images, lambda i: _name(images[i], i), on_progress)
    if found.unreadable:
        left_out = listed([str(image) for image in found.unreadable], separator="; ")
        on_event({"event": "notice", "text": f"left out, because they cannot be read: {left_out}"})
    place = {row: i for i, row in enumerate(found.rows)}
    arrived, start = {}, 0
    for name, of_class in call.arriving.items():
        rows = [row for row in range(start, start + len(of_class)) if row in place]
        start += len(of_class)
        if not rows:
            raise InputError(f'"{name}" has no image that can be read: add some, or remove it')
        arrived[name] = Arrived([images[row] for row in rows], found.vectors[[place[row] for row in rows]])
    return arrived


def _classes(
    folder: ModelFolder,
    call: ExactCall,
    known: Sequence[StoredClass],
    arrived: Mapping[str, Arrived],
    points: Mapping[str, np.ndarray],
) -> tuple[tuple[StoredClass, ...], dict[str, np.ndarray]]:
    """Every class with the images that stay of it, and the points of those that are new; a remembered class of which
    more images came is learned."""
    earlier = {stored.name: stored for stored in known}
    most = call.kept_of(len({*earlier, *arrived}))
    classes, linked = dict(earlier), {}
    for name, of_class in arrived.items():
        kept = earlier[name].images if name in earlier else ()
        squares = (pixels(image, call.config.image_size) for image in of_class.images[: max(0, most - len(kept))])
        new = [*map(folder.vault.put, squares)]
        linked |= zip(new, points[name], strict=False)
        classes[name] = StoredClass(name=name, kind="learned", images=tuple(dict.fromkeys((*kept, *new))))
    return tuple(s.model_copy(update={"images": s.images[:most]}) for s in classes.values()), linked


def _name(image: Encoded, place: int) -> str:
    return str(image) if isinstance(image, str) or hasattr(image, "__fspath__") else f"image {place}"
