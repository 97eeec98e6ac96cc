"""One run folder, followed: what changed since the last look is read, and nothing is ever written or locked."""

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Literal

from pydantic import ValidationError

from episodica.config import NotTrusted, Schedule, resolve_stored
from episodica.config.flat import flatten
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.files.parsing import parse_json, parse_yaml
from episodica.records.results import Session
from episodica.records.run import CONFIG, ERROR_LOG, EVENTS, MOST, RESULTS
from episodica.records.tail import MOST_LINES, Lines, Stamp
from episodica.records.time_left import MOST_SESSIONS, finite_result
from episodica.watch.run_events import RunEvents

State = Literal["running", "finished", "interrupted", "failed", "waiting"]
STILL = 60.0  # seconds without a movement after which a run whose lock we cannot see counts as stopped
MOST_RESULTS, MOST_ERROR = 1 << 24, 1 << 13  # bytes


def read_config(folder: Folder) -> dict[str, Any]:
    """The config as it is written, understood or not; nothing where it is not like what we write."""
    try:
        tree = parse_yaml(folder.read(CONFIG, MOST[CONFIG]))
    except (OSError, InputError):
        return {}
    return tree if isinstance(tree, dict) else {}


class WatchedRun:
    """Everything that the page shows of a run."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder, self.name = folder, name
        self.events = RunEvents()
        self.config: dict[str, Any] = {}
        self.planned: Schedule | None = None  # by the config, for runs whose events do not say
        self.state: State = "waiting"
        self.moved = float("-inf")  # when, on the clock of `refresh`
        self.changed = 0.0  # when, as seconds since 1970
        self._lines = Lines(folder, EVENTS)
        self._stamps: dict[str, Stamp | None] = {}
        self._status: str | None = None
        self._rows: dict[int, Session] = {}  # of results.json, for folders without events
        self._locked = self._let_go = False
        self._failure: str | None = None  # of ours, in showing it
        self._not_planned: str | None = None  # why the config was left alone

    def refresh(self, now: float, wall: float, locked: bool) -> bool:
        """Look again, with the time on a clock that never jumps and on the wall; whether anything changed."""
        before, moved = self.state, self._read_events()
        changed = [
            moved,
            self._when_changed(CONFIG, self._read_config),
            self._when_changed(RESULTS, self._read_results),
            self._when_changed(ERROR_LOG, lambda: None),
        ]
        if any(changed):
            self._failure = None
            self._note_movement(now, wall)
        self._let_go = not locked and (self._locked or (self._let_go and not moved))
        self._locked = locked
        self.state = self._state(now)
        return any(changed) or self.state != before

    def give_up(self, error: Exception) -> None:
        """Show none of it but why: what is in one folder must not hide the others."""
        self.events, self.config, self._rows = RunEvents(), {}, {}
        self.planned = Schedule(0, 0)
        self._failure = f"{type(error).__name__}: {str(error)[:200]}"

    def _read_events(self) -> bool:
        anew, lines = self._lines.fresh()
        if anew:
            self.events = RunEvents()
        for line in lines:
            self.events.feed(line)
        return anew or bool(lines)

    def _when_changed(self, name: str, read: Any) -> bool:
        stamp = Stamp.of(self.folder, name)
        if name in self._stamps and stamp == self._stamps[name]:
            return False
        appeared = stamp is not None or name in self._stamps
        self._stamps[name] = stamp
        read()
        return appeared

    def _read_config(self) -> None:
        self.config = read_config(self.folder)
        self.planned = self._not_planned = None

    def _read_results(self) -> None:
        try:
            found = parse_json(self.folder.read(RESULTS, MOST_RESULTS))
            rows = [finite_result(row) for row in found["sessions"][:MOST_SESSIONS]]
            self._status, self._rows = str(found["status"]), {row.session: row for row in rows}
        except (OSError, ValueError, KeyError, TypeError, ValidationError):
            self._status, self._rows = None, {}

    def _note_movement(self, now: float, wall: float) -> None:
        times = [path.changed / 1e9 for path in (self._lines.stamp, *self._stamps.values()) if path is not None]
        self.changed = max(times, default=0.0)
        first_look = self.moved == float("-inf")
        self.moved = now - max(wall - self.changed, 0.0) if first_look else now

    def _state(self, now: float) -> State:
        if self._status == "finished":
            return "finished"
        if self._locked:
            return "running"
        events, results = self._lines.stamp, self._stamps[RESULTS]
        ended = self._let_go or (
            self._status in ("interrupted", "failed")
            and events is not None
            and results is not None
            and events.changed <= results.changed
        )
        if events is not None and now - self.moved < STILL and not ended and self._stamps[ERROR_LOG] is None:
            return "running"
        if self._stamps[ERROR_LOG] is not None or self._status == "failed":
            return "failed"
        return "waiting" if events is None and self._status is None else "interrupted"

    @property
    def rows(self) -> dict[int, Session]:
        return self.events.position.results or self._rows

    def plan(self) -> None:
        """Work out the schedule from the config, which takes a moment."""
        try:
            found = schedule_of(self.config)
        except NotTrusted as error:
            found, self._not_planned = None, str(error)
        self.planned = found or Schedule(self._tasks, 0)

    @property
    def needs_plan(self) -> bool:
        """Not where the events say it, and not of a finished run."""
        return self.schedule is None and self.state != "finished" and bool(self.config)

    @property
    def schedule(self) -> Schedule | None:
        return self.events.position.schedule or self.planned

    @property
    def _tasks(self) -> int:
        tasks = self._section("stream").get("tasks")
        return tasks if isinstance(tasks, int) and 0 <= tasks <= MOST_SESSIONS else 0

    def _section(self, name: str) -> Mapping[str, Any]:
        section = self.config.get(name)
        return section if isinstance(section, Mapping) else {}

    def _name_in(self, section: str) -> str:
        return _text(self._section(section).get("name", ""))

    def summary(self) -> dict[str, Any]:
        events, rows = self.events, [self.rows[session] for session in sorted(self.rows)]
        position, schedule = events.position, self.schedule or Schedule(self._tasks, 0)
        position.schedule = self.schedule
        unfinished = self.state != "finished"
        shape = self._section("shape")
        return {
            "name": self.name,
            "state": self.state,
            "phase": events.phase,
            "method": self._name_in("method"),
            "dataset": self._name_in("data"),
            "backbone": self._name_in("backbone"),
            "learner": self._name_in("learner"),
            "way": _text(shape.get("way", "?")),
            "shots": _text(shape.get("shots", "?")),
            "seed": _text(self.config.get("seed", "?")),
            "scale": _text(self.config.get("scale", "?")),
            "bound": bool(rows) and rows[0].session == 1 and len(rows[0].per_task) > 1,
            "tasks": self._tasks,
            "session": position.session or len(rows),
            "sessions": schedule.sessions if unfinished else len(rows),
            "step": position.step,
            "steps": self.schedule.steps if unfinished and self.schedule else None,
            "done": position.done if unfinished else 1.0,
            "left": _brief(position.seconds_left) if self.state == "running" else None,
            "speed": _brief(position.speed),
            "loss": {name: _brief(value) for name, value in events.loss.items()},
            "trained": sum(row.seconds_train for row in rows)
            + (position.seconds if position.session not in self.rows else 0),
            "curves": {
                "session": [row.session for row in rows],
                "meta_test": [[_brief(row.meta_test.mean), _brief(row.meta_test.ci95)] for row in rows],
                "seen": [[_brief(row.seen.mean), _brief(row.seen.ci95)] for row in rows],
                "forgetting": [_brief(row.forgetting) for row in rows],
            },
            "warning": events.warning,
            "changed": self.changed,
        }

    def detail(self) -> dict[str, Any]:
        events = self.events
        return {
            **self.summary(),
            "series": {name: [(at, _brief(y)) for at, y in series.points()] for name, series in events.terms.items()},
            "starts": events.position.starts,
            "notices": [*events.notices, *self._problems()],
            "events": list(events.lines),
            "error": self._error(),
            "config": {path: "none" if value is None else _text(value) for path, value in flatten(self.config).items()},
        }

    def _problems(self) -> Iterator[str]:
        if self.events.damaged:
            yield f"{self.events.damaged} damaged lines were skipped"
        if self._lines.too_long:
            yield f"{EVENTS} is longer than {MOST_LINES >> 20} MiB, and the rest is not read"
        if self._not_planned is not None:
            yield f"its schedule is not known: {self._not_planned}"
        if self._failure is not None:
            yield f"this run cannot be shown: {self._failure}"

    def _error(self) -> str | None:
        try:
            return self.folder.read_end(ERROR_LOG, MOST_ERROR).decode("utf-8", "replace")
        except (OSError, InputError):
            return None


def schedule_of(tree: Mapping[str, Any]) -> Schedule | None:
    """None for a config that this version does not understand."""
    try:
        found = resolve_stored(dict(tree)).schedule
    except NotTrusted:
        raise
    except (InputError, TypeError, ValueError):
        return None
    return found if found.sessions <= MOST_SESSIONS else None


def _brief(value: float | None) -> float | None:
    """As many digits as a curve can show: hundreds of runs are sent often."""
    return None if value is None or not isfinite(value) else float(f"{value:.5g}")


def _text(value: Any) -> str:
    return json.dumps(value, default=str) if isinstance(value, list | bool) else str(value)
