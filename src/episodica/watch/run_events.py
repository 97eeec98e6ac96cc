"""What the events of a run tell about it, line by line."""

import json
from collections import deque
from collections.abc import Mapping
from math import isfinite
from typing import Any

from pydantic import ValidationError

from episodica.records.results import Session
from episodica.watch.downsampled import Downsampled

RECENT = 12  # logged steps that the speed is taken over
LAST_LINES, LAST_NOTICES, LONGEST_LINE, MOST_TERMS = 60, 100, 400, 24


class RunEvents:
    """The state after the lines fed so far. Steps are counted over all sessions, as the loss curves need them."""

    def __init__(self) -> None:
        self.session = self.step = 0
        self.seconds = 0.0
        self.phase = "preparing"
        self.examined = 0  # pools of the current session that are evaluated
        self.rows: dict[int, Session] = {}
        self.terms: dict[str, Downsampled] = {}
        self.loss: dict[str, float] = {}
        self.starts: list[int] = []  # steps taken before each session
        self.notices: deque[str] = deque(maxlen=LAST_NOTICES)
        self.lines: deque[str] = deque(maxlen=LAST_LINES)
        self.damaged = 0
        self._recent: deque[tuple[int, float]] = deque([(0, 0.0)], maxlen=RECENT)
        self._handlers = {
            "session": self._on_session,
            "step": self._on_step,
            "evaluation": self._on_evaluation,
            "result": self._on_result,
            "notice": self._on_notice,
        }

    def feed(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            handle = self._handlers.get(event["event"])
            if handle is not None:
                handle(event)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, ValidationError):
            self.damaged += 1
        self.lines.append(line[:LONGEST_LINE].decode("utf-8", "replace"))

    @property
    def speed(self) -> float | None:
        """Steps a second, lately."""
        (first, began), (last, ended) = self._recent[0], self._recent[-1]
        return (last - first) / (ended - began) if last > first and ended > began else None

    def _enter(self, session: int) -> None:
        if session == self.session:
            return
        self.starts.append(self.starts[-1] + self.step if self.starts else 0)
        self.session, self.step, self.seconds, self.examined = session, 0, 0.0, 0
        self.phase = "training"
        self._recent = deque([(0, 0.0)], maxlen=RECENT)

    def _on_session(self, event: Mapping[str, Any]) -> None:
        self._enter(_count(event["session"]))

    def _on_step(self, event: Mapping[str, Any]) -> None:
        session, step, seconds = _count(event["session"]), _count(event["step"]), _finite(event["seconds"])
        loss = {str(name): _finite(value) for name, value in event["loss"].items()}
        self._enter(session)
        self.step, self.seconds, self.loss = step, seconds, loss
        self._recent.append((step, seconds))
        for name, value in loss.items():
            if name in self.terms or len(self.terms) < MOST_TERMS:
                self.terms.setdefault(name, Downsampled()).add(self.starts[-1] + step, value)

    def _on_evaluation(self, event: Mapping[str, Any]) -> None:
        self._enter(_count(event["session"]))
        self.phase, self.examined = "evaluating", self.examined + 1

    def _on_result(self, event: Mapping[str, Any]) -> None:
        row = finite_row(event)
        self._enter(row.session)
        self.phase, self.rows[row.session] = "evaluated", row

    def _on_notice(self, event: Mapping[str, Any]) -> None:
        self.notices.append(str(event["text"])[:LONGEST_LINE])


def finite_row(values: Mapping[str, Any]) -> Session:
    row = Session.model_validate(values)
    numbers = (row.meta_test.mean, row.meta_test.ci95, row.seen.mean, row.seen.ci95, row.forgetting or 0)
    for number in (*numbers, row.seconds_train, row.seconds_eval):
        _finite(number)
    _count(row.session)
    return row


def _finite(value: Any) -> float:
    if not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return float(value)


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 40:
        raise ValueError(f"{value} does not count anything")
    return value
