"""Changes to a state without training, image by image. Sums are exact, so each can be undone to the last bit."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from episodica.classifier.exact_state import ExactRecord, ExactState
from episodica.classifier.state import StoredClass
from episodica.errors import InputError
from episodica.learners.statistics import UNIT, Statistics

SAME = 0.02  # the distance within which a point is that of an image which was embedded again


def class_of_points(statistics: Statistics) -> dict[bytes, str]:
    """Which class each image belongs to, by the bytes of its point."""
    return {point.tobytes(): name for name, of_class in statistics.classes.items() for point in of_class}


def adding(state: ExactState, name: str, new: np.ndarray, digests: Sequence[str]) -> ExactState:
    """With images of a class, which may be new; none of them is known yet. `digests` are of the first ones, which stay.

    int16 [n, D]
    """
    stored = _find(state, name) or StoredClass(name=name, kind="remembered", images=())
    more = stored.model_copy(update={"images": tuple(dict.fromkeys((*stored.images, *digests)))})
    kept = {**(state.kept or {}), **dict(zip(digests, new, strict=False))}
    return _changed(state, state.statistics.add(name, new), _replaced(state.classes, name, more), kept)


def removing(state: ExactState, gone: Mapping[str, Iterable[np.ndarray]], digests: Iterable[str] = ()) -> ExactState:
    """Without some images, by the points that are theirs in each class; a class without images is gone.

    Images that are kept go with their points; `digests` are of those of which the state does not say which it is.
    """
    kept, others = state.kept or {}, set(digests)
    statistics, classes = state.statistics, state.classes
    for name, of_class in gone.items():
        points, stored = np.unique(np.stack([*of_class]), axis=0), _find(state, name)
        assert stored is not None
        lines = {point.tobytes() for point in points}
        rest = tuple(
            digest
            for digest in stored.images
            if digest not in others and not (digest in kept and kept[digest].tobytes() in lines)
        )
        statistics = statistics.drop(name, points)
        left = stored.model_copy(update={"images": rest}) if name in statistics.classes else None
        classes = _replaced(classes, name, left)
    return _changed(state, statistics, classes, kept)


def renaming(state: ExactState, name: str, to: str) -> ExactState:
    """With another name for a class; where a class has it already, the two become one."""
    stored, other = _find(state, name), _find(state, to)
    assert stored is not None
    known = state.statistics
    have = {point.tobytes() for point in known.classes[to]} if other else set()
    new = [point for point in known.classes[name] if point.tobytes() not in have]
    known = known.remove(name)
    known = known.add(to, np.stack(new)) if new else known
    kinds = {one.kind for one in (stored, other) if one}
    images = tuple(dict.fromkeys((*(other.images if other else ()), *stored.images)))
    merged = StoredClass(name=to, kind="learned" if "learned" in kinds else "remembered", images=images)
    classes = _replaced(state.classes, name, None if other else merged)
    classes = _replaced(classes, to, merged) if other else classes
    renamed = state.record.model_copy(
        update={
            "history": tuple(
                step.model_copy(update={"classes": tuple(dict.fromkeys(to if n == name else n for n in step.classes))})
                for step in state.history
            )
        }
    )
    return _changed(state, known, classes, state.kept or {}, renamed)


def joining(state: ExactState, other: ExactState, keep: Callable[[str], str]) -> ExactState:
    """With all classes of another state that has the same encoder. `keep` takes an image of it, by its digest, and says
    under which one it is kept here."""
    for stored in other.classes:
        known = class_of_points(state.statistics)
        images = [digest for digest in stored.images if digest in (other.kept or {})]
        linked = {(other.kept or {})[digest].tobytes(): digest for digest in images}
        new = [p for p in other.statistics.classes[stored.name] if p.tobytes() not in known]
        new.sort(key=lambda point: point.tobytes() not in linked)
        digests = [keep(linked[key]) for key in (point.tobytes() for point in new) if key in linked]
        if new:
            state = adding(state, stored.name, np.stack(new), digests)
    return state


def points_of_images(
    state: ExactState, digests: Iterable[str], embed: Callable[[str], np.ndarray]
) -> dict[str, dict[str, np.ndarray]]:
    """The point of each image that is kept, by the class that it is in and its digest. Where the state does not say
    which it is, it is `embed`ed and looked for. int16 [D]"""
    wanted, kept = set(digests), state.kept or {}

    def point(of_class: np.ndarray, digest: str) -> np.ndarray:
        return kept[digest] if digest in kept else _nearest(of_class, embed(digest))

    found = {
        stored.name: {d: point(state.statistics.classes[stored.name], d) for d in stored.images if d in wanted}
        for stored in state.classes
    }
    return {name: of_class for name, of_class in found.items() if of_class}


def _nearest(of_class: np.ndarray, point: np.ndarray) -> np.ndarray:
    distances = np.linalg.norm((of_class.astype(float) - point) * UNIT, axis=1)
    if float(distances.min()) > SAME:
        raise InputError("an image of the model is none of those that its class is known from: restore the folder")
    return of_class[int(distances.argmin())]


def _find(state: ExactState, name: str) -> StoredClass | None:
    return next((stored for stored in state.classes if stored.name == name), None)


def _replaced(classes: tuple[StoredClass, ...], name: str, by: StoredClass | None) -> tuple[StoredClass, ...]:
    """In its place, or at the end where there is none of that name; none: without it."""
    if by is not None and all(stored.name != name for stored in classes):
        return (*classes, by)
    return tuple(by if stored.name == name else stored for stored in classes if stored.name != name or by)  # type: ignore[misc]


def _changed(
    state: ExactState,
    statistics: Statistics,
    classes: tuple[StoredClass, ...],
    kept: Mapping[str, np.ndarray],
    record: ExactRecord | None = None,
) -> ExactState:
    changed = (record or state.record).model_copy(update={"classes": classes})
    most = changed.kept_of_a_class
    cut = tuple(stored.model_copy(update={"images": stored.images[:most]}) for stored in classes)
    numbered = ExactRecord.numbered(changed.model_copy(update={"classes": cut}))
    return ExactState.of(numbered, statistics, state.encoders, kept)
