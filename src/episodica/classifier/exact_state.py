"""A state without training: the points of every image that came, from which all else follows.

What is computed from them is never kept beside them. So a class that is forgotten is gone from every number.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from safetensors.numpy import load, save

from episodica.classifier.adapter import HeldOut, PointAdapter
from episodica.classifier.encoder_files import EncoderFiles, EncoderRecord
from episodica.classifier.exact_measure import measured
from episodica.classifier.exact_recogniser import ExactRecogniser, points_as_they_are
from episodica.classifier.options import Adapt
from episodica.classifier.recogniser import Recogniser
from episodica.classifier.state import EXACT_FORMAT, LARGEST_IMAGE, Measured, ModelState, StateRecord, Step, StoredClass
from episodica.learners.statistics import Statistics, points

POINTS, KEPT = "points.safetensors", "kept"
MOST_POINTS = 2**32  # bytes


class ExactRecord(StateRecord):
    format: Literal[2] = EXACT_FORMAT  # type: ignore[assignment]
    encoder: EncoderRecord
    adapt: Adapt = "no"
    """what was asked for last; what came of it is among the facts of the encoder"""
    keep: int | None = Field(default=None, ge=0)

    @property
    def kept_of_a_class(self) -> int | None:
        return self.keep if self.budget is None else self.budget // max(1, len(self.classes))

    @classmethod
    def numbered(cls, record: Self) -> Self:
        """Calls to learn are counted by what is left of the history: what was forgotten leaves no gap."""
        calls = [step for step in record.history if step.what == "learn"]
        first = {name: i for i, step in reversed([*enumerate(calls, 1)]) for name in step.classes}
        classes = tuple(
            stored.model_copy(update={"session": first.get(stored.name) if stored.kind == "learned" else None})
            for stored in record.classes
        )
        return record.model_copy(update={"classes": classes, "sessions": len(calls)})


class ExactState(ModelState):
    FILES: ClassVar[tuple[str, ...]] = (POINTS,)

    def __init__(
        self,
        id: str,
        record: ExactRecord,
        arrays: Mapping[str, np.ndarray],
        encoders: EncoderFiles,
        statistics: Statistics | None = None,
    ) -> None:
        """`arrays` are those of the statistics, which are made of them where they are not given."""
        self.id, self._record, self.encoders = id, record, encoders
        self._arrays, self._statistics = arrays, statistics

    @classmethod
    def of(
        cls,
        record: ExactRecord,
        statistics: Statistics,
        encoders: EncoderFiles,
        kept: Mapping[str, np.ndarray] | None = None,
    ) -> "ExactState":
        """`kept` has the point of each image that stays, by its digest, as far as they are known."""
        arrays = statistics.arrays()
        if kept is not None:
            arrays[KEPT] = _rows(record, statistics, kept)
        return cls("", record, arrays, encoders, statistics)

    @classmethod
    def most(cls, record: StateRecord) -> dict[str, int]:
        """The bytes that each file may have."""
        return {POINTS: MOST_POINTS}

    @classmethod
    def from_files(
        cls,
        id: str,
        record: ExactRecord,
        files: Mapping[str, bytes],
        encoders: EncoderFiles,
        statistics: Statistics | None = None,
    ) -> "ExactState":
        return cls(id, record, load(files[POINTS]), encoders, statistics)

    def files(self) -> dict[str, bytes]:
        return {POINTS: save(dict(self._arrays))}

    @cached_property
    def statistics(self) -> Statistics:
        """Summed up when they are first asked for."""
        return self._statistics or Statistics.from_arrays(sorted(self.record.names), self._arrays)

    @cached_property
    def kept(self) -> Mapping[str, np.ndarray] | None:
        """The point of each image that is kept, by its digest; states of earlier versions do not say."""
        return self._read_kept()

    def _read_kept(self) -> Mapping[str, np.ndarray] | None:
        rows = self._arrays.get(KEPT)
        if rows is None:
            return None
        images = [(stored.name, digest) for stored in self.classes for digest in stored.images]
        if rows.shape != (len(images),):
            raise ValueError(f"{list(rows.shape)} rows of {len(images)} images")
        found = zip(images, rows.tolist(), strict=True)
        return {digest: self.statistics.classes[name][row] for (name, digest), row in found if row >= 0}

    @property
    def record(self) -> ExactRecord:
        return self._record

    @property
    def exact(self) -> bool:
        return True

    @property
    def has_adapter(self) -> bool:
        return self.record.encoder.adapter is not None

    @property
    def keeps_points(self) -> bool:
        return True

    def adapted(self, known: Statistics) -> Statistics:
        """As answers are computed from: turned by the adapter, where there is one."""
        adapter = self.encoders.adapter(self.record.encoder, known.width)
        return known if adapter is None else known.turned(adapter)

    @property
    def encoder_digests(self) -> set[str]:
        encoder = self.record.encoder
        return {*([encoder.digest] if encoder.included else []), *([encoder.adapter] if encoder.adapter else [])}

    def images_of(self, stored: StoredClass) -> int:
        return len(self.statistics.classes[stored.name])

    def _tried_recogniser(self) -> Recogniser:
        size = self.config.image_size
        if size > LARGEST_IMAGE:
            raise ValueError(f"images of {size} x {size} pixels, more than {LARGEST_IMAGE} x {LARGEST_IMAGE}")
        encoder, width = self.record.encoder, self.statistics.width
        adapter = self.encoders.adapter(encoder, width)
        found = ExactRecogniser(
            self.encoders.load(encoder, self.config),
            self.adapted(self.statistics),
            turn=adapter or points_as_they_are,
            stranger=encoder.stranger,
        )
        (vector,) = found.embed(np.zeros((1, size, size, 3), np.uint8))
        if not np.isfinite(vector).all():
            raise ValueError("weights are not finite numbers")
        if vector.shape != (self.statistics.width,):
            raise ValueError(f"classes of {self.statistics.width} numbers, images of {list(vector.shape)}")
        self._read_kept()  # rows of a stranger's file may lead anywhere
        return found

    def remembering(
        self, vectors: Mapping[str, np.ndarray], images: Mapping[str, tuple[str, ...]], when: str
    ) -> "ExactState":
        others = self.statistics.among(set(self.statistics.names) - set(vectors))
        kept = dict(self.kept or {})
        for name, of_class in vectors.items():
            new = points(of_class)
            others = others.add(name, np.unique(new, axis=0))
            kept |= zip(images[name], new, strict=False)  # the first ones are those that stay
        record = ExactRecord.numbered(self.record.with_remembered(images, when))
        return ExactState.of(record, others, self.encoders, kept)

    def statistics_with(self, arrived: Mapping[str, np.ndarray]) -> Statistics:
        """With the points of more images, of new classes or known ones; the same point counts once."""
        known = self.statistics
        for name, of_class in arrived.items():
            have = known.classes.get(name)
            together = np.unique(of_class if have is None else np.concatenate([have, of_class]), axis=0)
            known = (known if have is None else known.remove(name)).add(name, together)
        return known

    def with_adapter(
        self, adapt: Adapt, adapter: PointAdapter | None = None, held_out: HeldOut | None = None
    ) -> "ExactState":
        """The same points, answered by what this adapter makes of them, or as they are."""
        encoder = self.record.encoder.bare
        if adapter is not None:
            encoder = self.encoders.with_adapter(encoder, adapter, held_out or HeldOut())
        record = self.record.model_copy(update={"encoder": encoder, "adapt": adapt})
        return ExactState("", record, self._arrays, self.encoders, self._statistics)

    def learning(
        self,
        arrived: Mapping[str, np.ndarray],
        classes: tuple[StoredClass, ...],
        step: Step,
        keep: Mapping[str, int | None],
        kept: Mapping[str, np.ndarray],
    ) -> "ExactState":
        """With the points of more images, of new classes or known ones; `classes` are all classes after that, and
        `kept` are the points of new images that stay."""
        known = self.statistics_with(arrived)
        done = step.model_copy(update={"measured": self._measured(known)})
        record = self.record.model_copy(update={"classes": classes, "history": (*self.history, done), **keep})
        return ExactState.of(ExactRecord.numbered(record), known, self.encoders, {**(self.kept or {}), **kept})

    def _measured(self, known: Statistics) -> Measured:
        """To an adapter that was trained on them, images that are left out are still no strangers."""
        found = measured(self.adapted(known))
        if not self.has_adapter:
            return found
        return found.model_copy(update={"accuracy": self.record.encoder.recognised, "unknown_auroc": None})

    def without(self, name: str) -> "ExactState":
        """An adapter was trained on all classes and keeps what it learned of them: it goes, too."""
        if self.has_adapter:
            return self.with_adapter(self.record.adapt).without(name)
        if name not in self.record.names:
            return ExactState("", self.record.without(name), self._arrays, self.encoders, self._statistics)
        rest = self.statistics.remove(name)
        came = next((i for i, step in enumerate(self.history) if name in step.classes), 0)  # else nobody knows when
        steps = [
            step.model_copy(update={"measured": None}) if i >= came else step for i, step in enumerate(self.history)
        ]
        record = self.record.model_copy(update={"history": tuple(steps)}).without(name)
        calls = [i for i, step in enumerate(record.history) if step.what == "learn"]
        if calls and record.history[calls[-1]].measured is None:
            last = record.history[calls[-1]].model_copy(update={"measured": self._measured(rest)})
            history = (*record.history[: calls[-1]], last, *record.history[calls[-1] + 1 :])
            record = record.model_copy(update={"history": history})
        return ExactState.of(ExactRecord.numbered(record), rest, self.encoders, self.kept)


def _rows(record: ExactRecord, statistics: Statistics, kept: Mapping[str, np.ndarray]) -> np.ndarray:
    """Where the point of each image that is kept lies among those of its class; -1 where nobody knows. int64 [K]"""
    rows = []
    for stored in record.classes:
        places = {point.tobytes(): row for row, point in enumerate(statistics.classes[stored.name])}
        rows += [places.get(kept[d].tobytes(), -1) if d in kept else -1 for d in stored.images]
    return np.array(rows, np.int64)
