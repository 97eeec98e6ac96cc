"""What one folder holds must not hide the other runs, nor take all time and memory."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from episodica.config.flat import flatten
from episodica.files.door import Folder
from episodica.records import tail
from episodica.records.tail import Lines
from episodica.records.time_left import MOST_SESSIONS
from episodica.watch import watched_run
from episodica.watch.app import to_json
from episodica.watch.run_events import RunEvents
from episodica.watch.watched_folder import WatchedFolder
from unit.watch.fake_run import FakeRun

CONFIGS = {
    "a list as a key": "? [a, b]\n: 1",
    "a list of lists as a key": "? [[1]]\n: 1",
    "a number as a key": "stream: {1: 2}\n3: 4",
    "nothing as a key": "~: {~: 1}",
    "a number of 4,001 digits": "seed: " + "9" * 4_001,
    "tasks of 4,001 digits": "stream: {tasks: " + "9" * 4_001 + "}",
    "a hexadecimal number that cannot be printed": "seed: 0x" + "f" * 20_000,
    "more tasks than can be counted": "stream: {tasks: 3000000000}\nmethod: {name: ft}",
    "more tasks and steps": "stream: {tasks: 3000000000}\ntrain: {epochs: 9000000000000000000, episodes: 1000000000}",
    "negative tasks": "stream: {tasks: -3}",
    "references": "a: &a [x, x]\nb: &b [*a, *a]\nstream: *b",
    "depth": "[" * 60_000,
    "a date": "seed: 2024-01-01\nmethod: {name: 2024-01-01}",
    "no mapping": "[1, 2]",
}


def row(session: Any, **changes: Any) -> dict[str, Any]:
    mean = {"mean": 0.5, "ci95": 0.1}
    usual = {"classes_seen": 5, "meta_test": {**mean, "episodes": 9}, "seen": mean, "per_task": [], "forgetting": None}
    return {"event": "result", "session": session, **usual, "seconds_train": 1.0, "seconds_eval": 1.0, **changes}


def step(**changes: Any) -> dict[str, Any]:
    return {"event": "step", "session": 1, "step": 1, "loss": {"meta": 1.0}, "seconds": 1.0, **changes}


EVENTS = {
    "seconds whose sum is no number": [row(1, seconds_train=1.7e308), row(2, seconds_train=1.7e308)],
    "a speed that is no number": [step(step=1, seconds=5e-324)],
    "losses whose sum is no number": [step(step=n, seconds=n, loss={"meta": 1.7e308}) for n in range(1, 600)],
    "a number of 4,001 digits": [step(step=int("9" * 4_001))],
    "sessions without end": [{"event": "session", "session": 1 << 39}, row(1 << 39)],
    "a schedule without end": [{"event": "session", "session": 1, "sessions": 3_000_000_000, "steps": 1}, step()],
    "another kind": [[], 3, None, "x", {"event": []}, {"event": "step"}, {"event": {}}],
    "a name without end": [step(loss={"x" * 100_000: 1.0})],
}


@pytest.fixture
def runs(tmp_path: Path) -> WatchedFolder:
    good = FakeRun(tmp_path / "good")
    good.begin()
    good.steps(3)
    return WatchedFolder(tmp_path)


def shown(folder: WatchedFolder) -> list[dict[str, Any]]:
    for _ in range(2):
        folder._searched = float("-inf")
        folder.refresh()
    found = folder.since(0).runs
    for run in found:
        to_json([run, folder.detail(run["id"])])
    assert {run["name"]: run["step"] for run in found}["good"] == 30
    return found


@pytest.mark.parametrize("case", CONFIGS)
def test_a_config(runs: WatchedFolder, tmp_path: Path, case: str) -> None:
    bad = FakeRun(tmp_path / "bad")
    bad.begin()
    bad.steps(3)
    (tmp_path / "bad" / "config.yaml").write_text(CONFIGS[case])
    assert len(shown(runs)) == 2


@pytest.mark.parametrize("case", EVENTS)
def test_events(runs: WatchedFolder, tmp_path: Path, case: str) -> None:
    bad = FakeRun(tmp_path / "bad")
    bad.events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS[case]))
    found = shown(runs)
    assert max(len(name) for run in found for name in run["loss"]) <= 80


def test_a_failure_of_ours_is_that_run_s_alone(
    runs: WatchedFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeRun(tmp_path / "bad", seed=77)

    def fails(config: Any) -> Any:
        if config.get("seed") == 77:
            raise ZeroDivisionError("unexpected")
        return flatten(config)

    monkeypatch.setattr(watched_run, "flatten", fails)
    key = next(run["id"] for run in shown(runs) if run["name"] == "bad")
    detail = runs.detail(key)
    assert detail is not None
    assert "ZeroDivisionError" in detail["notices"][-1]


def test_a_log_of_400_mb_is_read_piece_by_piece_and_not_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    line = json.dumps(step()).encode() + b"\n"
    path.write_bytes(line * 1_000)
    with path.open("r+b") as file:
        file.truncate(400_000_000)
    lines, looks, most = Lines(Folder(path.parent), path.name), 0, 0
    monkeypatch.setattr(tail, "MOST_LINES", 16 * tail.BLOCK)
    while not lines.too_long and looks < 100:
        _, found = lines.fresh()
        looks, most = looks + 1, max(most, sum(map(len, found)))
    assert looks == 4
    assert most <= tail.A_LOOK + tail.BLOCK
    assert lines.fresh() == (False, [])


def test_pieces_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "BLOCK", 64)
    monkeypatch.setattr(tail, "A_LOOK", 128)
    path = tmp_path / "events.jsonl"
    whole = [b"%d" % n for n in range(1_000)]
    path.write_bytes(b"\n".join(whole) + b"\n")
    lines = Lines(Folder(path.parent), path.name)
    found = [line for _ in range(100) for line in lines.fresh()[1]]
    assert found == whole


def test_rows_are_bounded() -> None:
    events = RunEvents()
    for session in range(1, MOST_SESSIONS + 50):
        events.feed(json.dumps(row(session)).encode())
    assert len(events.position.results) == MOST_SESSIONS
    assert events.damaged == 49


@pytest.mark.parametrize("name", ["config.yaml", "events.jsonl", "results.json", "error.log", ".lock"])
def test_pipes_and_devices(runs: WatchedFolder, tmp_path: Path, name: str) -> None:
    FakeRun(tmp_path / "bad")
    FakeRun(tmp_path / "worse")
    for folder in ("bad", "worse"):
        (tmp_path / folder / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "bad" / name)
    (tmp_path / "worse" / name).symlink_to("/dev/zero")
    assert len(shown(runs)) == 3


def test_a_folder_name_that_is_no_text(runs: WatchedFolder, tmp_path: Path) -> None:
    FakeRun(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[31m")))
    assert len(shown(runs)) == 2
