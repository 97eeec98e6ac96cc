"""One run folder, in every state it can be in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.config import Schedule
from episodica.files.door import Folder
from episodica.watch.watched_run import STILL, WatchedRun, schedule_of
from unit.watch.fake_run import FakeRun

DAYS_LATER = 1e6


def look(folder, now=0.0, wall=4e9, locked=False) -> WatchedRun:
    """By default long after the folder was written."""
    run = WatchedRun(Folder(folder), folder.name)
    run.refresh(now, wall, locked)
    return run


@pytest.fixture
def fake(tmp_path) -> FakeRun:
    return FakeRun(tmp_path / "ft-1")


def test_waiting_before_anything_happened(fake):
    assert look(fake.folder).state == "waiting"


def test_running_while_its_lock_is_held(fake):
    assert look(fake.folder, locked=True).state == "running"
    fake.begin()
    fake.evaluate()
    assert look(fake.folder, locked=True).state == "running"


def test_finished_whatever_else(fake):
    fake.whole()
    assert look(fake.folder).state == "finished"
    assert look(fake.folder, locked=True).state == "finished"


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_what_the_run_said_when_it_stopped(fake, status):
    fake.begin()
    fake.write_results(status)
    assert look(fake.folder, wall=0).state == status


def test_an_error_log_means_failed_until_somebody_works_on_it(fake):
    fake.begin()
    (fake.folder / "error.log").write_text("Traceback: it was the disk")
    assert look(fake.folder).state == "failed"
    assert look(fake.folder).detail()["error"] == "Traceback: it was the disk"
    assert look(fake.folder, locked=True).state == "running"


def test_a_run_that_moves_without_a_lock_that_we_see_runs_until_it_stands_still(fake):
    fake.begin()
    run = look(fake.folder, wall=0)
    assert run.state == "running"
    run.refresh(STILL / 2, 0, locked=False)
    fake.steps(1)
    run.refresh(STILL, 0, locked=False)
    run.refresh(STILL * 1.9, 0, locked=False)
    assert run.state == "running"
    assert run.refresh(STILL * 2.1, 0, locked=False)
    assert run.state == "interrupted"


def test_a_run_whose_lock_we_saw_is_interrupted_as_soon_as_it_is_free(fake):
    fake.begin()
    run = look(fake.folder, wall=0, locked=True)
    run.refresh(1, 0, locked=False)
    assert run.state == "interrupted"
    run.refresh(2, 0, locked=False)
    assert run.state == "interrupted"


def test_a_copied_folder_that_was_running_counts_as_interrupted(fake):
    fake.begin()
    fake.evaluate()
    assert look(fake.folder).state == "interrupted"


def test_results_without_events_still_have_curves(fake):
    fake.whole()
    fake.events.unlink()
    summary = look(fake.folder).summary()
    assert summary["curves"]["session"] == [1, 2, 3, 4]
    assert summary["session"] == 4


def test_a_continued_run_takes_its_steps_again(fake):
    fake.begin()
    fake.steps(4)
    keep = fake.events.read_bytes()
    fake.steps(4)
    run = look(fake.folder)
    fake.events.write_bytes(keep)
    run.refresh(1, 4e9, locked=True)
    assert run.events.position.step == 40
    assert run.detail() == look(fake.folder, now=1, locked=True).detail()


@given(st.lists(st.integers(1, 600), max_size=30))
def test_following_in_pieces_equals_reading_everything(tmp_path_factory, pieces):
    folder = tmp_path_factory.mktemp("runs") / "ft-1"
    fake = FakeRun(folder).whole()
    data = fake.events.read_bytes()
    fake.events.write_bytes(b"")
    run, at = look(folder), 0
    for size in [*pieces, len(data)]:
        with fake.events.open("ab") as file:
            file.write(data[at : at + size])
        at += size
        run.refresh(0, 4e9, locked=False)
    once = look(folder)
    run.changed = once.changed
    assert run.detail() == once.detail()


def test_the_schedule_gives_progress_and_time_left(fake):
    fake.begin()
    fake.steps(2)
    run = look(fake.folder, locked=True)
    assert run.needs_plan
    run.plan()
    assert run.schedule == Schedule(sessions=4, steps=40)
    assert run.summary()["done"] == pytest.approx(20 / 160)
    assert run.summary()["left"] == pytest.approx(140 / 10)
    fake.steps(2)
    fake.evaluate()
    run.refresh(1, 0, locked=True)
    pools = 3 + 4 + 5
    assert run.summary()["left"] == pytest.approx(120 / 10 + pools * 2.0 / 2)


def test_what_events_say_about_steps_and_sessions_counts_more_than_the_config(fake):
    fake.begin()
    fake.log("step", step=5, epoch=1, lr=0.001, loss={"meta": 1.0}, seconds=1.0, sessions=2, steps=10)
    run = look(fake.folder, locked=True)
    assert not run.needs_plan
    summary = run.summary()
    assert (summary["sessions"], summary["steps"], summary["done"]) == (2, 10, 0.25)
    assert summary["left"] == pytest.approx(15 / 5)


def test_a_bound_has_one_session_with_all_tasks(tmp_path):
    assert schedule_of(FakeRun(tmp_path / "joint-1", "joint").config) == Schedule(sessions=1, steps=160)


def test_a_config_of_another_version_has_no_schedule_but_tasks(fake):
    (fake.folder / "config.yaml").write_text("method: {name: from the future}\nstream: {tasks: 7}\n")
    run = look(fake.folder, locked=True)
    run.plan()
    assert run.summary()["sessions"] == 7
    assert run.summary()["left"] is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[1, 2]",
        b"a: [",
        b"\xff\xff",
        b"a: &a [1]\nb: [*a, *a]\n",
        b"method: 3\nstream: [1]\nshape: x\n",
        b"{" * 60_000,
        b"[" * 30_000 + b"]" * 30_000,
        b"- " * 30_000,
        b"1: {2: 3}\n? [a]\n: b\n",
        b"method: {name: 2020-01-01}\nscale: .nan\n",
    ],
)
@pytest.mark.parametrize("name", ["config.yaml", "results.json", "events.jsonl", "error.log"])
def test_damaged_files_are_shown_as_far_as_they_go(fake, name, text):
    fake.begin()
    (fake.folder / name).write_bytes(text)
    run = look(fake.folder)
    run.plan()
    json.dumps(run.detail(), allow_nan=False)


def test_files_that_lead_elsewhere_are_not_read(fake, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("method: {name: secret}\n")
    for name in ("config.yaml", "error.log", "events.jsonl", "results.json"):
        (fake.folder / name).unlink(missing_ok=True)
        (fake.folder / name).symlink_to(secret)
    assert "secret" not in json.dumps(look(fake.folder).detail())
