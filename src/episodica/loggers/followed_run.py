"""One run, followed: what is new in its events is told to each logger, and its results when it ends."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import ValidationError

from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.files.parsing import parse_json
from episodica.loggers.contents import pictures, tables
from episodica.loggers.logger import Ended, LoggedRun, Logger
from episodica.records.results import Results
from episodica.records.run import EVENTS, load_results
from episodica.records.tail import Lines
from episodica.records.time_left import RunPosition, finite

SECONDS_BETWEEN_LOOKS = 2.0
ENDS: dict[str, Ended] = {"finished": "finished", "found": "finished", "failed": "failed"}


class FollowedRun:
    def __init__(self, run: LoggedRun, kinds: Mapping[str, type[Logger]], say: Callable[[str], None]) -> None:
        self._run, self._kinds, self._say = run, dict(kinds), say
        self._folder = Folder(run.out) / run.id
        self._lines = Lines(self._folder, EVENTS)
        self._open: dict[str, Logger] = {}
        self._position = RunPosition()
        self._looked = float("-inf")
        self._begun = self._ended = False

    def on_event(self, event: Mapping[str, Any]) -> None:
        """An event says that there is something to read; before the first of a session, nothing is."""
        ended = ENDS.get(event["event"])
        if ended:
            self.end(ended)
        elif "session" in event and (event["event"] != "step" or self._is_time()):
            self.look()

    def _is_time(self) -> bool:
        return time.monotonic() - self._looked > SECONDS_BETWEEN_LOOKS

    def look(self) -> None:
        """Tell what is new; everything from the beginning where the run was begun or continued."""
        self._looked = time.monotonic()
        while self._kinds:
            anew, lines = self._lines.fresh()
            if anew or not self._begun:
                self._begin()
            for line in lines:
                with suppress(ValueError, KeyError, TypeError, AttributeError, ValidationError):  # a damaged line
                    self._tell_event(parse_json(line))
            if not lines:
                break
        self._each(lambda logger: logger.flush())

    def end(self, ended: Ended) -> None:
        """What is not begun yet is, where there is anything to tell."""
        if self._ended or not self._folder.has(EVENTS):
            return
        self.look()
        self._ended = True
        with suppress(InputError):  # whoever reads the results will say what is wrong with them
            results = load_results(self._folder)
            for table in tables(results) if results else ():
                self._each(lambda logger, table=table: logger.table(table))
            if results and results.sessions:
                self._draw(results)
        self._each(lambda logger: logger.close(ended))
        self._open = {}

    def _draw(self, results: Results) -> None:
        try:
            drawn = pictures(self._run.config, results)
        except InputError as error:
            return self._say(f"no pictures in the logs: {error}")
        for name, png in drawn.items():
            self._each(lambda logger, name=name, png=png: logger.picture(name, png))
        return None

    def _begin(self) -> None:
        self._each(lambda logger: logger.close("interrupted"))
        self._position, self._begun = RunPosition(), True
        self._open = {}
        for name, kind in list(self._kinds.items()):
            with self._giving_up(name):
                self._open[name] = kind(self._run)

    def _tell_event(self, event: Mapping[str, Any]) -> None:
        self._position.on_event(event)
        match event["event"]:
            case "step":
                loss = {f"loss/{name}": finite(value) for name, value in event["loss"].items()}
                at = self._position.starts[-1] + self._position.step
                self._each(lambda logger: logger.points("step", at, {**loss, "lr": finite(event["lr"])}))
            case "result":
                row = self._position.results[event["session"]]
                values = {"accuracy/unseen": row.meta_test.mean, "accuracy/seen": row.seen.mean}
                values |= {f"accuracy/task {of.task}": of.mean for of in row.per_task}
                if row.forgetting is not None:
                    values["forgetting"] = row.forgetting
                self._each(lambda logger: logger.points("session", row.session, values))

    def _each(self, tell: Callable[[Logger], None]) -> None:
        for name, logger in list(self._open.items()):
            with self._giving_up(name):
                tell(logger)

    @contextmanager
    def _giving_up(self, name: str) -> Iterator[None]:
        """Whatever a logger raises costs that logger alone."""
        try:
            yield
        except Exception as error:
            self._kinds.pop(name, None)
            self._open.pop(name, None)
            self._say(f"logging to {name} has stopped, and the run goes on: {type(error).__name__}: {error}")
