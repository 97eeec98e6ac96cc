"""A run folder that somebody else sent: continuing it changes nothing outside, and a report publishes nothing."""

from contextlib import nullcontext

import pytest
import torch

from episodica.engine.checkpoint import Checkpoint, Checkpoints
from episodica.errors import InputError
from episodica.files.door import Refused
from episodica.records.run import EventLog, RunFolder, announce, write_failure
from episodica.report.discovery import find_runs
from unit.files.hostile import LINKS, PRECIOUS, plant

PLACES = ["", "checkpoints", "events.jsonl", "config.yaml", "results.json", "env.json", "error.log", "episodes"]
END = Checkpoint(session=0, step=0, ended=True, events=0, seconds_train=0.0)


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("place", PLACES)
def test_links_in_a_run_do_not_reach_outside(tmp_path, make_config, victim, place, kind):
    config = make_config()
    with RunFolder(tmp_path, config) as folder:
        pass
    plant(kind, folder.path / place if place else folder.path, victim)
    announce([config], tmp_path)
    with (
        nullcontext() if place == "error.log" else pytest.raises(InputError, match="is a link")
    ):  # whose place is taken
        write_failure(config, tmp_path, "it failed")
        with RunFolder(tmp_path, config) as run:
            run.forget_failure()
            run.finished()
            run.write_environment({"threads": 1, "device": "", "kernel_path": "", "versions": {}})
            run.write_episodes(0, {})
            Checkpoints(run.checkpoints).save(END, {"weight": torch.ones(1)})
            with EventLog(run.folder, keep=3) as log:
                log({"event": "step"})


def test_events_that_another_file_shares_are_not_cut(tmp_path, make_config, victim):
    with RunFolder(tmp_path, make_config()) as run:
        (run.path / "events.jsonl").hardlink_to(victim.file)
        with pytest.raises(Refused, match="has other names"):
            EventLog(run.folder, keep=0)


@pytest.mark.parametrize("name", ["config.yaml", "error.log", "results.json", "checkpoints", "episodes"])
def test_a_report_publishes_nothing_that_a_run_links_to(tmp_path, make_config, victim, name):
    with RunFolder(tmp_path, make_config()) as run:
        pass
    plant("link to a file", run.path / name, victim)
    (found,) = find_runs([tmp_path])
    assert PRECIOUS.decode().strip() not in repr(found)
    if "." in name:
        assert f"{name} is a link" in found.remark


def test_runs_behind_links_are_not_found(tmp_path, victim):
    plant("link to a folder", tmp_path / "out" / "run", victim)
    with pytest.raises(InputError, match="no run in"):
        find_runs([tmp_path / "out"])
