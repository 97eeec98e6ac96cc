"""A config in a folder cannot import a module or open a folder that the user has not named."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from episodica.classifier.state import StateRecord
from episodica.classifier.trained_state import TrainedState
from episodica.config import NotTrusted, is_trusted, resolve, resolve_stored, trust
from episodica.config.trust import TRUST
from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.records.run import load_config
from episodica.report.discovery import find_runs
from episodica.watch.watched_run import WatchedRun

HOSTILE = {"backbone": {"name": "planted:Net"}}
CODE = """
from torch import nn
class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Flatten())
"""


@pytest.fixture(autouse=True)
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scratch_registry: None) -> Iterator[None]:
    """A module that can be imported, as everything in the folder that a user works in can."""
    (tmp_path / "planted.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys.modules[trust.__module__], "_named", set())
    yield
    sys.modules.pop("planted", None)


@pytest.fixture
def run(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "out") / "run"
    folder.write_text("config.yaml", json.dumps(HOSTILE))
    return folder


def assert_nothing_ran() -> None:
    assert "planted" not in sys.modules


def test_a_run(run: Folder) -> None:
    with pytest.raises(InputError, match="EPISODICA_TRUST=planted:Net"):
        load_config(run)
    assert_nothing_ran()


def test_a_report_says_so(run: Folder) -> None:
    (found,) = find_runs([run.root])
    assert "EPISODICA_TRUST=planted:Net" in found.remark
    assert_nothing_ran()


def test_the_live_page_says_so(run: Folder) -> None:
    watched = WatchedRun(run, "run")
    watched.refresh(0.0, 0.0, locked=False)
    watched.plan()
    assert "EPISODICA_TRUST=planted:Net" in watched.detail()["notices"][-1]
    assert_nothing_ran()


def test_a_model() -> None:
    record = StateRecord(config=HOSTILE, sessions=0, classes=())
    with pytest.raises(NotTrusted, match="lies outside this folder"):
        TrainedState("", record, {}, torch.empty(0)).recogniser()
    assert_nothing_ran()


def test_what_the_user_names_is_opened(run: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUST, "other:Net,planted:Net")
    assert load_config(run).backbone.name == "planted:Net"


def test_what_the_user_has_named_may_be_continued(run: Folder) -> None:
    assert resolve(HOSTILE) == load_config(run)


def test_data_at_an_address_is_trusted_where_the_user_has_written_it() -> None:
    tree = {"data": {"name": "folder", "root": "s3://bucket/photos"}}
    resolve_stored(tree)  # which opens nothing
    assert not is_trusted("s3://bucket/photos")
    resolve(tree)
    assert is_trusted("s3://bucket/photos")


@pytest.mark.parametrize("at", ["folder", "."])
def test_a_folder_of_a_hub_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotTrusted, match="lies outside this folder"):
        resolve_stored({"backbone": {"name": "hub", "model": at}})


@pytest.mark.parametrize("model", ["../../etc", "x" * 5_000, "a\0b", "/dev/zero", "no/such", ""])
def test_an_id_of_a_hub_model_is_refused_without_a_download(model: str) -> None:
    with pytest.raises(InputError):
        resolve_stored({"backbone": {"name": "hub", "model": model}})
