"""All runs below a folder."""

import os
from itertools import count
from pathlib import Path

import pytest
from filelock import FileLock

from episodica.files.door import Folder
from episodica.watch import watched_folder
from episodica.watch.watched_folder import WatchedFolder, held_locks, is_locked, run_folders
from unit.watch.fake_run import FakeRun


@pytest.fixture
def runs(tmp_path) -> WatchedFolder:
    return WatchedFolder(tmp_path)


@pytest.fixture(autouse=True)
def always_searching(monkeypatch):
    monkeypatch.setattr(watched_folder, "BETWEEN_SEARCHES", 0.0)


def names(runs: WatchedFolder) -> list[str]:
    return sorted(run["name"] for run in runs.since(0).runs)


def test_runs_are_found_at_any_depth_but_not_through_links(tmp_path, runs):
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    FakeRun(elsewhere / "ft-9")
    FakeRun(tmp_path / "ft-1")
    FakeRun(tmp_path / "a" / "b" / "ft-2")
    FakeRun(tmp_path / ".hidden" / "ft-3")
    (tmp_path / "link").symlink_to(elsewhere)
    runs.refresh()
    assert names(runs) == ["a/b/ft-2", "ft-1"]


def test_the_folder_itself_may_be_a_run(tmp_path):
    FakeRun(tmp_path / "ft-1")
    runs = WatchedFolder(tmp_path / "ft-1")
    runs.refresh()
    assert names(runs) == ["ft-1"]


def test_nothing_there_is_no_error(tmp_path):
    assert list(run_folders(Folder(tmp_path / "nowhere"))) == []
    runs = WatchedFolder(tmp_path / "nowhere")
    runs.refresh()
    assert runs.since(0).runs == []


def test_only_changes_are_told(tmp_path, runs):
    one, _ = FakeRun(tmp_path / "ft-1"), FakeRun(tmp_path / "ft-2")
    runs.refresh()
    before = runs.version
    runs.refresh()
    assert runs.since(before).runs == []
    one.begin()
    runs.refresh()
    assert [run["name"] for run in runs.since(before).runs] == ["ft-1"]


def test_runs_come_and_go(tmp_path, runs):
    one = FakeRun(tmp_path / "ft-1").whole()
    runs.refresh()
    (key,) = (run["id"] for run in runs.since(0).runs)
    version = runs.version
    one.folder.rename(tmp_path / "ft-2")
    runs.refresh()
    assert runs.since(version).gone == [key]
    assert runs.detail(key) is None
    assert names(runs) == ["ft-2"]
    (tmp_path / "ft-2").rename(tmp_path / "ft-1")
    runs.refresh()
    assert key not in runs.since(version).gone
    assert runs.detail(key) is not None


def test_runs_are_told_apart_by_what_differs_among_their_like(tmp_path, runs):
    for seed in (0, 1):
        FakeRun(tmp_path / f"ft-{seed}", seed=seed)
    FakeRun(tmp_path / "ida-1", "ida", seed=3)
    old = FakeRun(tmp_path / "ft-0").folder / "config.yaml"
    old.write_text(old.read_text().replace("scale: 1.0\n", ""))
    runs.refresh()
    assert {run["name"]: run["apart"] for run in runs.since(0).runs} == {
        "ft-0": ["seed=0"],
        "ft-1": ["seed=1"],
        "ida-1": [],
    }


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not list its locks")
def test_a_held_lock_is_seen_without_being_touched(tmp_path):
    lock = FileLock(tmp_path / ".lock")
    with lock:
        assert is_locked(Folder(tmp_path), held_locks())
    assert not is_locked(Folder(tmp_path), held_locks())


def test_a_table_of_locks_that_is_missing_or_strange(tmp_path):
    assert held_locks(tmp_path / "none") == frozenset()
    (tmp_path / "locks").write_text("1: FLOCK\n\n2: FLOCK  ADVISORY  WRITE 1 <none>:0 0 EOF\n")
    assert held_locks(tmp_path / "locks") == frozenset()


def test_hundreds_of_runs(tmp_path, runs):
    first = FakeRun(tmp_path / "ft-000").whole()
    files = {path.name: path.read_bytes() for path in first.folder.iterdir()}
    for n in range(1, 300):
        folder = tmp_path / f"ft-{n:03d}"
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
    runs.refresh()
    while runs.behind:
        runs.refresh()
    assert len(runs.since(0).runs) == 300
    version = runs.version
    first.begin()
    runs.refresh()
    assert len(runs.since(version).runs) == 1


def test_every_look_is_short_and_the_liveliest_runs_come_first(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_folder, "READING", 1.5)
    for n in range(5):
        run = FakeRun(tmp_path / f"ft-{n}")
        run.begin()
        os.utime(run.events, (n, n))
    seconds = count()
    runs = WatchedFolder(tmp_path, now=lambda: float(next(seconds)))
    runs.refresh()
    assert names(runs) == ["ft-4"]
    assert runs.behind
    while runs.behind:
        runs.refresh()
    assert len(names(runs)) == 5
