"""Runs and models written by 0.1.0 are read, continued, reported and shown."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from torch import Tensor

from episodica import FewShotClassifier, load_experiment, load_learner
from episodica.data.glyph_drawing import draw
from episodica.engine.run import run_one
from episodica.files.door import Folder
from episodica.models import conv4
from episodica.records.run import load_config, load_results
from episodica.report.build import build
from episodica.report.discovery import find_runs
from episodica.watch.watched_folder import WatchedFolder

WRITTEN = Path(__file__).parents[1] / "fixtures" / "0.1.0"
STEPS, SESSIONS = 4, 2
UNINTERRUPTED = {"meta_test": 0.40667, "seen": 0.38333}  # what 0.1.0 measured where it was not interrupted
NEAR = 15 / (10 * 3 * 15)  # in queries of an evaluation: other processors add up in another order


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(conv4.CHANNELS, "classic", (4, 4, 4, 4))
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return shutil.copytree(WRITTEN, tmp_path / "written")


def run_folder(parent: Path) -> Path:
    (folder,) = parent.iterdir()
    return folder


def test_the_run_id_of_a_written_config_is_the_name_of_its_folder() -> None:
    for state in ("finished", "interrupted"):
        folder = run_folder(WRITTEN / state)
        assert load_config(Folder(folder)).run_id == folder.name


def test_a_finished_run_is_found_finished_and_its_learner_loads(written: Path) -> None:
    folder = run_folder(written / "finished")
    events: list[str] = []
    results = run_one(load_config(Folder(folder)), written / "finished", lambda event: events.append(event["event"]))
    assert events == ["found"]
    assert results == load_results(Folder(folder))
    assert load_learner(folder).embed(_pixels(folder)).shape == (2, 4)


def _pixels(folder: Path) -> Tensor:
    experiment = load_experiment(load_config(Folder(folder)))
    return experiment.pixels(experiment.stream.unseen.images()[:2])


def test_an_interrupted_run_is_continued_and_ends_as_if_it_had_not_been(written: Path) -> None:
    folder = run_folder(written / "interrupted")
    steps: list[tuple[int, int]] = []

    def on_event(event) -> None:
        if event["event"] == "step":
            steps.append((event["session"], event["step"]))

    results = run_one(load_config(Folder(folder)), written / "interrupted", on_event)
    assert steps == [(2, 3), (2, 4)]
    last = results.sessions[-1]
    assert {"meta_test": last.meta_test.mean, "seen": last.seen.mean} == pytest.approx(UNINTERRUPTED, abs=NEAR)
    old, new = (
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in (run_folder(WRITTEN / "interrupted") / "events.jsonl", folder / "events.jsonl")
    )
    assert new[: len(old)] == old


def test_a_report_shows_both_runs() -> None:
    found = find_runs([WRITTEN])
    assert sorted(run.state for run in found) == ["finished", "interrupted"]
    assert build(found).sections


def test_the_live_page_shows_how_far_both_runs_are() -> None:
    folder = WatchedFolder(WRITTEN)
    folder.refresh()
    while folder.behind:
        folder.refresh()
    runs = {run["name"].split("/")[0]: run for run in folder.since(0).runs}
    assert (runs["finished"]["done"], runs["interrupted"]["done"]) == (1, (STEPS + 2) / (SESSIONS * STEPS))


def test_a_model_answers_as_it_did_and_learns_on(written: Path) -> None:
    images = draw(6, 8, 16, 0)[0].reshape(6, 8, 16, 16, 3)
    model = FewShotClassifier.load(written / "model")
    assert model.classes_.tolist() == [f"class {c}" for c in range(5)]
    expected = np.loadtxt(WRITTEN / "probabilities.csv", delimiter=",")
    np.testing.assert_allclose(model.predict_proba(list(images[:5, 7])), expected, atol=1e-5)
    model.epochs, model.settings = 1, {"train.episodes": 2, "device": "cpu", "kernels": "torch"}
    model.partial_fit(list(images[5]), ["class 5"] * 8)
    assert [step.what for step in model.state_.history] == ["learn", "learn", "remember", "learn"]
    assert model.state_.config.method.name == "erd", "a model stays with the method that made it"
