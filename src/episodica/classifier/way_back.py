"""How a state without training follows from the one after it: what a change removed, and where the rest is.

Most of a state is in the one that came of it. So the way back has the numbers of rows there, the points that are there
no longer, and the fields of the record that differ: as a rule some kilobytes, whatever the number of images. What it
leads to is the state as it was, bit for bit, so its id, which has its digest, vouches for it.
"""

import json
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from episodica.classifier.encoder_files import EncoderFiles
from episodica.classifier.exact_state import ExactRecord, ExactState
from episodica.errors import InputError
from episodica.files.parsing import parse_json
from episodica.learners.statistics import Statistics


def way_back(after: ExactState, before: ExactState) -> bytes:
    same_space = after.statistics.width == before.statistics.width
    places = _Places(after.statistics if same_space else Statistics.none(before.statistics.width))
    changed: dict[str, list[int]] = {}
    for name, points in before.statistics.classes.items():
        same = after.statistics.classes.get(name) if same_space else None
        if same is None or not np.array_equal(same, points):
            changed[name] = [places.of(point) for point in points]
    text = {
        "width": before.statistics.width,
        "names": list(before.statistics.classes),
        "changed": {name: len(rows) for name, rows in changed.items()},
        "fields": _fields_back(after.record, before.record),
        "kept": _kept_back(after.kept, before),
    }
    rows = [row for of_class in changed.values() for row in of_class]
    none = np.empty((0, before.statistics.width), np.int16)
    return save(
        {
            "rows": np.array(rows, np.int32),
            "extra": np.stack(places.extra) if places.extra else none,
            "text": np.frombuffer(json.dumps(text).encode(), np.uint8),
        }
    )


def go_back(after: ExactState, way: bytes, encoders: EncoderFiles) -> ExactState:
    """The state before."""
    try:
        arrays = load(way)
        text = parse_json(arrays["text"].tobytes())
        return _gone_back(after, arrays["rows"], arrays["extra"], text, encoders)
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError, RuntimeError):
        raise InputError("the way back to the state before is damaged: this change cannot be undone any more") from None


def _gone_back(
    after: ExactState, rows: np.ndarray, extra: np.ndarray, text: Mapping[str, Any], encoders: EncoderFiles
) -> ExactState:
    known, changed = after.statistics, text["changed"]
    everything = extra if text["width"] != known.width else np.concatenate([known.arrays()["points"], extra])
    if rows.shape != (sum(changed.values()),):
        raise ValueError(f"{list(rows.shape)} rows of {sum(changed.values())} points")
    parts = dict(zip(changed, np.split(rows, np.cumsum([*changed.values()])[:-1]), strict=True)) if changed else {}
    classes = {name: everything[parts[name]] if name in parts else known.classes[name] for name in text["names"]}
    before = Statistics.of(classes, text["width"])
    record = _record(after.record, text["fields"])
    kept = None
    if text["kept"] is not None:
        points = before.arrays()["points"]
        kept = {**(after.kept or {}), **{digest: points[row] for digest, row in text["kept"]["gone"].items()}}
        for digest in text["kept"]["unlinked"]:
            kept.pop(digest, None)
    return ExactState.of(record, before, encoders, kept)


def _rows(statistics: Statistics) -> dict[bytes, int]:
    return {point.tobytes(): row for row, point in enumerate(statistics.arrays()["points"])}


class _Places:
    """Where a point is: among those of a state, or among extra ones, which are counted on."""

    def __init__(self, statistics: Statistics) -> None:
        self.extra: list[np.ndarray] = []
        self._next = int(statistics.total.counts.sum())
        self._known = _rows(statistics)

    def of(self, point: np.ndarray) -> int:
        key = point.tobytes()
        if key not in self._known:
            self._known[key] = self._next
            self._next += 1
            self.extra.append(point)
        return self._known[key]


def _fields_back(after: ExactRecord, before: ExactRecord) -> dict[str, Any]:
    """The fields that differ; of the classes those, and how many lines of the history are the same."""
    new, old = after.model_dump(mode="json"), before.model_dump(mode="json")
    fields = {name: value for name, value in old.items() if value != new[name]}
    if "classes" in fields:
        same = {stored["name"]: stored for stored in new["classes"]}
        fields["classes"] = [s["name"] if same.get(s["name"]) == s else s for s in old["classes"]]
    if "history" in fields:
        pairs = zip(old["history"], new["history"], strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        fields["history"] = [shared, old["history"][shared:]]
    return fields


def _record(after: ExactRecord, fields: dict[str, Any]) -> ExactRecord:
    record = {**after.model_dump(mode="json"), **fields}
    if "classes" in fields:
        same = {stored.name: stored.model_dump(mode="json") for stored in after.classes}
        record["classes"] = [same[stored] if isinstance(stored, str) else stored for stored in fields["classes"]]
    if "history" in fields:
        shared, rest = fields["history"]
        record["history"] = [*(step.model_dump(mode="json") for step in after.history[:shared]), *rest]
    return ExactRecord.model_validate_json(json.dumps(record))


def _kept_back(after: Mapping[str, np.ndarray] | None, before: ExactState) -> dict[str, Any] | None:
    """Images whose point the state after does not tell; none where the state before tells of none."""
    if before.kept is None:
        return None
    rows, known = _rows(before.statistics), after or {}
    gone = {
        digest: rows[point.tobytes()]
        for digest, point in before.kept.items()
        if digest not in known or not np.array_equal(known[digest], point)
    }
    unlinked = [digest for stored in before.classes for digest in stored.images if digest not in before.kept]
    return {"gone": gone, "unlinked": unlinked}
