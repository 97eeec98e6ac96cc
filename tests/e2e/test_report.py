"""`episodica report` on what runs have left behind."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from conformance.tiny import tiny
from e2e.conftest import Command
from episodica.config import RunConfig
from episodica.report import write
from episodica.report.figures.canvas import ENDINGS

Plain = Callable[[RunConfig], Path]


@pytest.fixture
def written(plain: Plain, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """The folder of a report on runs of these configs, in `runs` beside it, as `change` leaves them."""
    monkeypatch.setattr(write, "ENDINGS", ("svg",))  # the other kinds take longer than all the rest

    def make(
        *configs: RunConfig, change: Callable[[Path], object] = lambda runs: None, without: str = "", ask: str = ""
    ) -> Path:
        for config in configs:
            left_out = shutil.ignore_patterns(without) if without else None
            shutil.copytree(plain(config), tmp_path / "runs" / config.run_id, ignore=left_out)
        change(tmp_path / "runs")
        said = command("report", tmp_path / "runs", "--out", tmp_path / "report", *ask.split())
        assert said.code == 0, said.text
        return tmp_path / "report"

    return make


def test_a_report_has_tables_pictures_and_paired_differences(
    written: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "ENDINGS", ENDINGS)
    seeds = [tiny({"seed": 1}), tiny({"seed": 1}, method="ft")]
    report = written(tiny(method="ft"), tiny(), *seeds, tiny(method="joint"))
    text = (report / "report.md").read_text()
    for part in ("Accuracy on unseen classes", "Accuracy on seen classes", "| erd | 2 seeds |", "| joint | 1 seed |"):
        assert part in text
    assert "Difference to ft" in text
    assert "Difference to joint" in text
    assert text.count("| finished |") == 5
    for name in ("1-curves", "1-forgetting", "1-matrix", "1-losses"):
        assert (report / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (report / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert "<svg" in (report / "figures" / f"{name}.svg").read_text()
    for name in ("1-meta_test", "1-seen", "1-forgetting", "1-paired-1", "runs"):
        assert (report / "tables" / f"{name}.csv").exists()
        assert "\\begin{tabular}" in (report / "tables" / f"{name}.tex").read_text()
    page = (report / "report.html").read_text()
    assert page.count("<svg") == 4
    assert "http://" not in page.replace("http://www.w3.org/", "")


def test_different_settings_are_different_sections_and_scaled_ones_say_so(written: Callable[..., Path]) -> None:
    report = written(tiny(), tiny(method="ft"), tiny({"train.epochs": 4, "scale": 0.5, "augment.views": 2}))
    titles = [line for line in (report / "report.md").read_text().splitlines() if line.startswith("## ")]
    assert [title.split(", ")[-1] for title in titles] == [
        "2 epochs of 2 steps a session",
        "schedule scaled by 0.5",
        "## Runs",
    ]
    assert (report / "figures" / "2-curves.svg").exists()
    assert "shortened schedule" in (report / "report.html").read_text()


def test_variants_of_a_method_are_an_ablation(written: Callable[..., Path]) -> None:
    variants = [tiny({"method.p": p}) for p in (0.0, 0.2, 0.4)]
    report = written(tiny(method="ft"), *variants, tiny(method="joint"))
    text = (report / "report.md").read_text()
    assert "### Ablation of erd: share P of past classes" in text
    assert (report / "figures" / "1-ablation-erd-p.svg").exists()
    rows = (report / "tables" / "1-ablation-erd-p.tex").read_text()
    assert [part for part in ("p=0.0", "p=0.2", "p=0.4") if part in rows] == ["p=0.0", "p=0.2", "p=0.4"]


def test_every_run_is_listed_with_its_state(written: Callable[..., Path]) -> None:
    configs = [tiny({"seed": seed}) for seed in range(6)]

    def break_them(runs: Path) -> None:
        running, silent, damaged, unreadable, failed = (runs / config.run_id for config in configs[1:])
        results = running / "results.json"
        results.write_text(results.read_text().replace('"finished"', '"running"'))
        (silent / "results.json").unlink()
        (damaged / "results.json").write_text('{"schema": 1')
        (unreadable / "config.yaml").write_text("method: [")
        (failed / "results.json").unlink()
        (failed / "error.log").write_text(
            "Traceback\n  somewhere\nMemoryError: /home/me/x/y.png is too <b>large</b>\n\n"
        )

    report = written(*configs, change=break_them)
    listed = (report / "report.md").read_text().split("## Runs")[1]
    for state in ("finished", "running", "no results yet", "failed"):
        assert listed.count(f"| {state} |") == 1, state
    assert listed.count("| damaged |") == 2
    text = (report / "report.md").read_text()
    assert "1 seed; 1 more unfinished" in text
    assert "nothing to show yet: 1 of erd (damaged), 1 of erd (failed), 1 of erd (no results yet)." in text
    page = (report / "report.html").read_text()
    assert "MemoryError: y.png is too &lt;b&gt;large&lt;/b&gt;" in page
    assert "MemoryError: y.png is too &lt;b&gt;large&lt;/b&gt;" in text
    assert str(report.parent) not in text + page, "a report is published: where runs lie is nobody's business"


def test_what_cannot_be_shown_says_why_and_not_where(written: Callable[..., Path]) -> None:
    without_data, without_learner = tiny(), tiny({"seed": 1})

    def break_them(runs: Path) -> None:
        config = runs / without_data.run_id / "config.yaml"
        tree = yaml.safe_load(config.read_text())
        tree["data"] = {"name": "folder", "root": str(runs.parent / "images"), "size": 16}
        config.write_text(yaml.safe_dump(tree))
        (runs / without_learner.run_id / "checkpoints" / "001-end.safetensors").unlink()

    report = written(without_data, without_learner, change=break_them, ask="--images --maps")
    text, page = ((report / f"report.{ending}").read_text() for ending in ("md", "html"))
    assert page.count("cannot be read; its data set must be where its config.yaml says") == 2
    assert f"the checkpoint {without_learner.run_id}/checkpoints/001-end.* is damaged" in page
    assert str(report.parent) not in text + page


def test_a_copy_of_a_run_is_not_a_second_repeat(written: Callable[..., Path]) -> None:
    report = written(tiny(), change=lambda runs: shutil.copytree(runs / tiny().run_id, runs / "copy"))
    text = (report / "report.md").read_text()
    assert "| erd | 1 seed |" in text
    assert "| found twice |" in text


def test_results_without_their_episodes_are_reported_but_not_paired(written: Callable[..., Path]) -> None:
    report = written(tiny(method="ft"), tiny(), without="episodes")
    assert "| erd | 0 | 0 | episodes not kept | episodes not kept |" in (report / "report.md").read_text()


def test_the_numbers_of_the_page_are_those_of_the_results(written: Callable[..., Path], plain: Plain) -> None:
    page = (written(tiny()) / "report.html").read_text()
    for row in json.loads((plain(tiny()) / "results.json").read_text())["sessions"]:
        assert f'data-value="{100 * row["meta_test"]["mean"]}"' in page
        assert f'data-value="{100 * row["seen"]["mean"]}"' in page


def test_a_folder_without_runs_is_refused(command: Command, tmp_path: Path) -> None:
    said = command("report", tmp_path)
    assert said.code == 2
    assert "no run in" in said.text
    said = command("report", tmp_path / "nowhere")
    assert said.code == 2
    assert "there is no folder" in said.text


def test_a_file_in_the_place_of_the_report_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").touch()
    (tmp_path / "report").touch()
    said = command("report", tmp_path / "run", "--out", tmp_path / "report")
    assert said.code == 2
    assert "choose another folder" in said.text
