"""What loggers are told, and what becomes of those that fail."""

import builtins
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.tiny import tiny
from episodica.errors import InputError
from episodica.loggers.following import LOGGERS, find_loggers, following
from episodica.loggers.logger import LoggedRun, Logger, ResultsTable
from episodica.records.run import EVENTS, EventLog, RunFolder


class Told(Logger):
    """Remembers what it is told."""

    place = "nowhere"
    told: list[tuple[Any, ...]]

    def __init__(self, run: LoggedRun) -> None:
        self.told.append(("begin", run.id))

    def points(self, along: str, at: int, values: Mapping[str, float]) -> None:
        self.told.append((along, at, *values.values()))

    def table(self, table: ResultsTable) -> None: ...

    def picture(self, name: str, png: bytes) -> None: ...

    def flush(self) -> None: ...

    def close(self, ended: str) -> None:
        self.told.append(("end", ended))


class Failing(Told):
    def points(self, along: str, at: int, values: Mapping[str, float]) -> None:
        raise RuntimeError("the disk of the server is full")


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    monkeypatch.setattr(Told, "told", [], raising=False)
    monkeypatch.setattr("episodica.loggers.followed_run.SECONDS_BETWEEN_LOOKS", 0.0)
    return Told.told


def step(number: int, loss: float = 0.5) -> dict[str, Any]:
    place = {"session": 1, "sessions": 2, "steps": 9}
    return {"event": "step", **place, "step": number, "lr": 0.1, "loss": {"meta": loss}, "seconds": number + loss}


class World:
    """A run folder that is written as the trainer does."""

    def __init__(self, out: Path, kinds: dict[str, type[Logger]]) -> None:
        self.config, self.notices = tiny(), []
        self.folder = RunFolder(out, self.config).folder
        self.folder.make()
        self.following = following(kinds, "tiny", {self.config.run_id: "erd"}, out, lambda config: self._listen)

    def _listen(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "notice":
            self.notices.append(event["text"])


def test_a_log_that_is_cut_and_goes_on_is_told_anew(tmp_path: Path, told: list[tuple[Any, ...]]) -> None:
    world = World(tmp_path, {"told": Told})
    with world.following as on_event_for:
        on_event = on_event_for(world.config)
        with EventLog(world.folder, keep=0) as log:
            log(step(1))
            kept = log.position()
            for number in (2, 3):
                log(step(number))
                on_event(step(number))
        with EventLog(world.folder, keep=kept) as log:
            log(step(2, loss=0.75))
            on_event(step(2))
    id = world.config.run_id
    first = [("begin", id), ("step", 1, 0.5, 0.1), ("step", 2, 0.5, 0.1), ("step", 3, 0.5, 0.1), ("end", "interrupted")]
    assert told == [*first, ("begin", id), ("step", 1, 0.5, 0.1), ("step", 2, 0.75, 0.1), ("end", "interrupted")]


def test_a_logger_that_fails_is_named_and_the_others_go_on(tmp_path: Path, told: list[tuple[Any, ...]]) -> None:
    world = World(tmp_path, {"failing": Failing, "told": Told})
    with world.following as on_event_for:
        on_event = on_event_for(world.config)
        with EventLog(world.folder, keep=0) as log:
            for number in (1, 2):
                log(step(number))
                on_event(step(number))
    assert [entry for entry in told if entry[0] == "step"] == [("step", 1, 0.5, 0.1), ("step", 2, 0.5, 0.1)]
    (notice,) = world.notices
    assert notice == "logging to failing has stopped, and the run goes on: RuntimeError: the disk of the server is full"


def test_a_damaged_line_is_passed_over_and_a_run_without_events_leaves_no_log(
    tmp_path: Path, told: list[tuple[Any, ...]]
) -> None:
    world = World(tmp_path, {"told": Told})
    with world.following as on_event_for:
        on_event = on_event_for(world.config)
        on_event({"event": "reading", "what": "images", "done": 0, "total": 1})
        assert told == []
        damaged = b'{"event": "step"}\nno JSON\n{"event": "step", "session": 1, "step": 1, "loss": {"meta": "much"}}\n'
        (world.folder.path / EVENTS).write_bytes(damaged)
        on_event({"event": "failed"})
    assert told == [("begin", world.config.run_id), ("end", "failed")]


def test_unknown_loggers_are_refused() -> None:
    with pytest.raises(InputError, match='did you mean "tensorboard"'):
        find_loggers(["tensorbord"])


@pytest.mark.parametrize("name", LOGGERS)
def test_a_missing_package_names_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(module: str, *args: Any, **kwargs: Any) -> Any:
        if module.split(".")[0] == name or module == f"torch.utils.{name}":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(module, *args, **kwargs)

    monkeypatch.delitem(sys.modules, f"episodica.loggers.{name}", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InputError, match=rf"logging to {name} needs {LOGGERS[name][1]}, which alone is enough.*log"):
        find_loggers([name])
