"""What the live page shows of a run's events, line by line."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from episodica.files.parsing import parse_json
from episodica.records.run import WARNING
from episodica.records.time_left import RunPosition, finite
from episodica.watch.downsampled import Downsampled

LAST_LINES, LAST_NOTICES, LONGEST_LINE, MOST_TERMS, LONGEST_TERM = 60, 100, 400, 24, 80
PHASES = {"session": "training", "step": "training", "evaluation": "evaluating", "result": "evaluated"}


class RunEvents:
    """The state after the lines fed so far. Steps are counted over all sessions, as the loss curves need them."""

    def __init__(self) -> None:
        self.position = RunPosition()
        self.phase = "preparing"
        self.terms: dict[str, Downsampled] = {}
        self.loss: dict[str, float] = {}
        self.notices: deque[str] = deque(maxlen=LAST_NOTICES)
        self.lines: deque[str] = deque(maxlen=LAST_LINES)
        self.warning: str | None = None
        self.damaged = 0

    def feed(self, line: bytes) -> None:
        try:
            self._on_event(parse_json(line))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, ValidationError):
            self.damaged += 1
        self.lines.append(line[:LONGEST_LINE].decode("utf-8", "replace"))

    def _on_event(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        loss = (
            {str(name)[:LONGEST_TERM]: finite(value) for name, value in event["loss"].items()} if kind == "step" else {}
        )
        self.position.on_event(event)
        self.phase = PHASES.get(kind, self.phase)
        if kind == "notice":
            text = str(event["text"])[:LONGEST_LINE]
            self.notices.append(text)
            if text.startswith(WARNING):
                self.warning = text.removeprefix(WARNING)
        if kind == "step":
            self.loss = loss
            for name, value in loss.items():
                if name in self.terms or len(self.terms) < MOST_TERMS:
                    self.terms.setdefault(name, Downsampled()).add(self.position.starts[-1] + self.position.step, value)
