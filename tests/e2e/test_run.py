"""`episodica run` from a recipe to a table, and everything it leaves behind."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.torch import load_file

from conformance.tiny import SESSIONS, TINY, tiny
from e2e.conftest import BLANK, Command, Said, words
from episodica.config import RunConfig, resolve

Start = Callable[..., "subprocess.Popen[str]"]
RUNS = 4


@pytest.fixture
def whole(recipe: Path, start: Start) -> tuple[Said, Path]:
    out = recipe.parent / "runs"
    process = start("run", recipe, "--out", out, "--train.epochs", 1)
    printed, complaints = process.communicate()
    return Said(process.returncode, printed, complaints), out


def test_a_recipe_becomes_a_table_a_picture_and_a_complete_folder_for_each_run(whole: tuple[Said, Path]) -> None:
    said, out = whole
    assert (said.code, said.err) == (0, "")
    for part in ("unseen classes", "seen classes", "forgetting", "avg", "ft seed=0", "erd seed=1"):
        assert part in said.text.lower()
    assert f"Everything was written to {out}/: a folder for each run, the curves are in {out}/tiny.png." in said.text
    assert (out / "tiny.png").read_bytes().startswith(b"\x89PNG")
    folders = sorted(path for path in out.iterdir() if path.is_dir())
    assert len(folders) == RUNS
    for folder in folders:
        _check_folder(folder)


def _check_folder(folder: Path) -> None:
    config = resolve(yaml.safe_load((folder / "config.yaml").read_text()))
    assert config.run_id == folder.name
    assert {"python", "versions", "machine", "threads", "git_commit"} <= _json(folder / "env.json").keys()
    assert _json(folder / "exemplars.json").keys() == {"session", "classes"}
    assert all(json.loads(line)["session"] for line in (folder / "events.jsonl").read_text().splitlines())
    _check_results(_json(folder / "results.json"), config, _json(folder / "split.json")["hash"])
    _check_episodes(folder, config)
    assert [path.name for path in sorted((folder / "checkpoints").iterdir())] == [
        f"{session:03d}-end.{ending}" for session in range(1, SESSIONS + 1) for ending in ("json", "safetensors")
    ]
    for path in folder.glob("checkpoints/*.safetensors"):
        assert any(name.startswith("learner.") for name in load_file(path))
    endings = {path.suffix for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}
    assert endings == {".yaml", ".json", ".jsonl", ".npz", ".safetensors"}


def _check_results(results: dict, config: RunConfig, split_hash: str) -> None:
    expected = {
        "schema": 1,
        "status": "finished",
        "run": config.run_id,
        "method": config.method.name,
        "learner": "protonet",
        "backbone": "conv4",
        "dataset": "glyphs",
        "tasks": SESSIONS,
        "shape": {"way": 5, "shots": 1, "queries": 3},
        "seed": config.seed,
        "split_hash": split_hash,
        "scale": 1.0,
        "evaluations": [],
    }
    assert {key: results[key] for key in expected} == expected
    assert results.keys() - expected.keys() == {"sessions", "average"}
    for t, session in enumerate(results["sessions"], 1):
        assert session.keys() == {
            *("session", "classes_seen", "meta_test", "seen", "per_task", "forgetting", "seconds_train", "seconds_eval")
        }
        assert session["session"] == t
        assert session["meta_test"].keys() == {"mean", "ci95", "episodes"}
        assert session["seen"].keys() == {"mean", "ci95"}
        assert [task.keys() for task in session["per_task"]] == [{"task", "mean", "ci95"}] * t
        assert [task["task"] for task in session["per_task"]] == list(range(1, t + 1))
        assert (session["forgetting"] is None) == (t == 1)
        means = [part["mean"] for part in (session["meta_test"], session["seen"], *session["per_task"])]
        assert all(0 <= mean <= 1 for mean in means)
    assert results["sessions"][-1]["classes_seen"] == TINY["data.classes"] - TINY["stream.unseen_classes"]
    for metric, value in results["average"].items():
        assert value == pytest.approx(np.mean([session[metric]["mean"] for session in results["sessions"]]))


def _check_episodes(folder: Path, config: RunConfig) -> None:
    """The accuracies of all episodes give the means of the results."""
    for session in _json(folder / "results.json")["sessions"]:
        with np.load(folder / f"episodes/session-{session['session']:03d}.npz", allow_pickle=False) as arrays:
            assert len(arrays.files) == 1 + session["session"]
            unseen, first = arrays["5way-1shot-unseen"], arrays["5way-1shot-1"]
        assert unseen.shape == (config.eval.episodes,)
        assert unseen.mean() == pytest.approx(session["meta_test"]["mean"])
        assert first.mean() == pytest.approx(session["per_task"][0]["mean"])


def _json(path: Path) -> dict:
    return json.loads(path.read_text())


def test_running_again_reads_what_is_finished(command: Command, tmp_path: Path) -> None:
    once = ["run", *words(TINY), "--out", tmp_path]
    assert "was finished before" not in command(*once).text
    folder = tmp_path / tiny().run_id
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}
    again = command(*once)
    assert again.code == 0
    assert "was finished before" in again.text
    assert "Everything was written to" in again.text
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}


def test_one_training_can_be_examined_with_several_shots(command: Command, tmp_path: Path) -> None:
    assert command("run", *words(TINY), "--eval.shots", "[1, 5]", "--out", tmp_path).code == 0
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    results = _json(folder / "results.json")
    (five,) = results["evaluations"]
    assert (five["way"], five["shots"]) == (5, 5)
    assert len(five["sessions"]) == len(results["sessions"]) == SESSIONS
    assert five["average"]["meta_test"] != results["average"]["meta_test"]


def test_a_dry_run_prints_the_resolved_runs_and_writes_nothing(recipe: Path, command: Command) -> None:
    out = recipe.parent / "runs"
    as_json = command("run", recipe, "--dry-run", "--json", "--out", out)
    as_yaml = command("run", recipe, "--dry-run", "--out", out)
    runs = json.loads(as_json.out)
    assert (as_json.code, len(runs)) == (0, RUNS)
    assert all(run.keys() == {"run", "config"} for run in runs)
    assert all(resolve(run["config"]).run_id == run["run"] for run in runs)
    assert list(yaml.safe_load_all(as_yaml.out)) == runs
    assert not out.exists()


def test_an_option_keeps_the_cases_of_a_recipe_that_agree_with_it(recipe: Path, command: Command) -> None:
    runs = json.loads(command("run", recipe, "--dry-run", "--json", "--method.name", "erd", "--seed", "[3, 4, 5]").out)
    assert [(run["config"]["seed"], run["config"]["method"]["p"]) for run in runs] == [(s, 0.4) for s in (3, 4, 5)]


def test_runs_can_be_picked_repeated_and_scaled(command: Command) -> None:
    options = ["--only", "method.name=erd,ft", "--only=seed=1", "--orders", 2, "--seeds", 2, "--scale", 0.05]
    runs = json.loads(command("run", "table_ci", *options, "--dry-run", "--json").out)
    found = [(c["method"]["name"], c["stream"]["seed"], c["seed"], c["scale"]) for c in (run["config"] for run in runs)]
    assert found == [(method, order, 1, 0.05) for method in ("ft", "erd") for order in (0, 1)]


def test_a_failed_run_is_named_and_stops_no_other(
    recipe: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from episodica.methods.erd import ERD

    def fail(*_: object) -> None:
        raise RuntimeError("[no] luck")

    monkeypatch.setattr(ERD, "loss", fail)
    out = recipe.parent / "runs"
    said = command("run", recipe, "--out", out, "--train.epochs", 1)
    failed = [path.name for path in out.iterdir() if path.name.startswith("erd-")]
    assert said.code == 1
    assert len(failed) == RUNS / 2
    assert "RuntimeError: [no] luck" in said.text
    for name in failed:
        assert f"{name}, log: {out / name / 'error.log'}" in said.err
        assert "RuntimeError: [no] luck" in (out / name / "error.log").read_text()
    assert "ft seed=0" in said.text
    assert "Traceback" not in said.text


def test_a_recipe_without_names_takes_the_default_components(command: Command) -> None:
    (run,) = json.loads(command("run", BLANK, "--dry-run", "--json").out)
    assert run["config"]["method"]["name"] == "erd"


def test_a_picture_that_cannot_be_written_does_not_hide_the_results(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "[bold]"
    (out / "blank.png").mkdir(parents=True)
    said = command("run", *words(TINY), "--out", out)
    assert said.code == 0
    assert f"written to {out}/" in said.text
    assert "no picture" in said.text


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["list", "--help"], ["--version"]])
def test_help_is_there(arguments: list[str], command: Command) -> None:
    assert command(*arguments).code == 0
