import json
import os

import numpy as np
import pytest
import yaml

from episodica.config import resolve
from episodica.errors import FolderInUse, InputError
from episodica.files.door import Folder
from episodica.records.results import Ledger
from episodica.records.run import EventLog, RunFolder, announce, load_config, load_results


@pytest.fixture
def config(make_config):
    return make_config()


def test_a_folder_holds_the_config_of_its_run(tmp_path, config):
    with RunFolder(tmp_path, config) as folder:
        assert folder.path == tmp_path / config.run_id
        assert load_config(folder.folder) == config


def test_a_folder_is_worked_on_by_one_at_a_time(tmp_path, config):
    with RunFolder(tmp_path, config), pytest.raises(FolderInUse, match="another process works on"):
        RunFolder(tmp_path, config).__enter__()
    with RunFolder(tmp_path, config):
        pass


@pytest.mark.parametrize("text", ["seed: 5", "{", "- 1", "", "sed: 1", "\0"])
def test_a_foreign_or_damaged_config_is_refused_and_kept(tmp_path, config, text):
    with RunFolder(tmp_path, config) as folder:
        path = folder.path / "config.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"holds the run|cannot be read as a run config"):
        RunFolder(tmp_path, config).__enter__()
    assert path.read_text() == text


def test_a_refused_folder_is_not_left_locked(tmp_path, config):
    with RunFolder(tmp_path, config) as folder:
        path = folder.path / "config.yaml"
    path.write_text("seed: 5")
    refused = RunFolder(tmp_path, config)
    with pytest.raises(InputError):
        refused.__enter__()
    path.unlink()
    with RunFolder(tmp_path, config):
        pass


def test_settings_that_do_not_decide_the_numbers_may_change(tmp_path, make_config):
    for threads in (1, 2):
        with RunFolder(tmp_path, make_config(threads=threads)) as folder:
            assert len(list(folder.path.parent.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_the_users_matter(tmp_path, config):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write to .* choose another output folder"):
        RunFolder(tmp_path / "file", config).__enter__()


def test_leftovers_of_a_killed_process_are_removed(tmp_path, config):
    with RunFolder(tmp_path, config) as folder:
        (folder.path / ".results.json.x.part").touch()
    with RunFolder(tmp_path, config) as folder:
        assert not list(folder.path.glob(".*.part"))


def test_results_and_episodes_can_be_read_back(tmp_path, config):
    with RunFolder(tmp_path, config) as folder:
        assert folder.finished() is None
        folder.write_results(Ledger(config, "hash").results("running"))
        assert folder.finished() is None
        results = Ledger(config, "hash").results("finished")
        folder.write_results(results)
        assert folder.finished() == results
        (folder.path / "results.json").write_text("{")
        assert folder.finished() is None
        folder.write_episodes(1, {"3way-1shot-unseen": np.array([0.5, 0.25])})
        with np.load(folder.path / "episodes" / "session-002.npz") as found:
            assert found["3way-1shot-unseen"].tolist() == [0.5, 0.25]


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 99}'])
def test_results_that_cannot_be_read_are_named(tmp_path, text):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError, match=r"results\.json"):
        load_results(Folder(tmp_path))


def test_the_log_of_events_has_its_name_on_the_disk_before_anything_counts_on_it(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("os.fsync", lambda number: synced.append(os.fstat(number).st_ino))
    with EventLog(Folder(tmp_path), keep=0):
        assert tmp_path.stat().st_ino in synced


def test_events_are_lines_of_json(tmp_path):
    path = tmp_path / "events.jsonl"
    with EventLog(Folder(tmp_path), keep=0) as log:
        log({"event": "a"})
        log({"event": "b", "loss": {"meta": 1.5}})
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["a", "b"]


def test_a_continued_log_forgets_the_events_of_steps_that_are_taken_again(tmp_path):
    path = tmp_path / "events.jsonl"
    with EventLog(Folder(tmp_path), keep=0) as log:
        log({"step": 1})
        kept = log.position()
        log({"step": 2})
    assert kept == len('{"step": 1}\n')
    with EventLog(Folder(tmp_path), keep=kept) as log:
        log({"step": 3})
        assert log.position() == path.stat().st_size
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 3]


def test_a_continued_log_stands_where_it_was_cut(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n')
    with EventLog(Folder(tmp_path), keep=12) as log:
        assert log.position() == 12


def test_a_log_that_was_lost_starts_anew(tmp_path):
    path = tmp_path / "events.jsonl"
    with EventLog(Folder(tmp_path), keep=50) as log:
        log({"step": 9})
    assert path.read_text() == '{"step": 9}\n'


def test_the_config_is_plain_yaml(tmp_path, config):
    with RunFolder(tmp_path, config) as folder:
        assert yaml.safe_load((folder.path / "config.yaml").read_text()) == config.tree()


def test_announced_runs_are_there_before_they_begin_and_what_is_there_stays(tmp_path):
    config = resolve({})
    announce([config], tmp_path)
    path = tmp_path / config.run_id / "config.yaml"
    assert load_config(Folder(path.parent)).run_id == config.run_id
    path.write_text(path.read_text() + "# touched\n")
    announce([config], tmp_path)
    assert path.read_text().endswith("# touched\n")
    announce([config], path)  # no folder: it is the run's to complain


HERE = {"threads": 1, "device": "cpu", "kernel_path": "torch", "versions": {"torch": "2.13.0"}}


def test_notices_say_what_has_changed_since_the_last_start(tmp_path, config):
    two = {**HERE, "threads": 2, "kernel_path": "fused"}
    with RunFolder(tmp_path, config) as folder:
        said = [folder.write_environment(environment) for environment in (HERE, HERE, two, two)]
    assert said == [[], [], ["continued with other threads, kernel_path: the last digits may differ"], []]
    assert json.loads((folder.path / "env.json").read_text()) == {**two, "earlier": [HERE]}


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_damaged_record_of_what_computes_is_named(tmp_path, config, text):
    with RunFolder(tmp_path, config) as folder:
        (folder.path / "env.json").write_text(text)
        with pytest.raises(InputError, match=r"env\.json is damaged: restore it, or delete it"):
            folder.write_environment(HERE)


def test_an_environment_of_another_version_lacks_keys(tmp_path, config):
    with RunFolder(tmp_path, config) as folder:
        folder.write("env.json", {"threads": 1})
        assert folder.write_environment(HERE) != []


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        (b'{"step": 1}\n', "lost its end, 12 bytes"),
        (b'{"step": 1}\n{"step": \xff}\n', "1 damaged lines"),
        (b'{"step": 1}\n[1, 2, 345]\n', "1 damaged lines"),
        (b"\0" * 23 + b"\n", "1 damaged lines"),
    ],
)
def test_a_damaged_log_is_not_continued_silently(tmp_path, damaged, said):
    (tmp_path / "events.jsonl").write_bytes(damaged)
    with EventLog(Folder(tmp_path), keep=24) as log:
        assert said in " ".join(log.damage)


def test_a_whole_log_has_no_damage(tmp_path):
    (tmp_path / "events.jsonl").write_bytes(b'{"step": 1}\n{"step": 2}\n{"step": 3}\n')
    with EventLog(Folder(tmp_path), keep=24) as log:
        assert log.damage == ()
