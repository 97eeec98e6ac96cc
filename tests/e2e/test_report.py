"""`episodica report` on what runs have left behind."""

import shutil
from collections.abc import Callable
from pathlib import Path

from conformance.tiny import tiny
from e2e.conftest import Command
from episodica.config import RunConfig

Plain = Callable[[RunConfig], Path]


def test_a_report_has_tables_pictures_and_paired_differences(plain: Plain, command: Command, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for config in (tiny(method="ft"), tiny(), tiny({"seed": 1}), tiny({"seed": 1}, method="ft"), tiny(method="joint")):
        shutil.copytree(plain(config), runs / config.run_id)
    said = command("report", runs, "--out", tmp_path / "report")
    assert said.code == 0, said.text
    text = (tmp_path / "report" / "report.md").read_text()
    for part in ("### Unseen classes", "### Seen classes", "| erd | 2 |", "| joint | 1 |", "### Difference to ft"):
        assert part in text
    assert text.count("finished") == 5
    assert (tmp_path / "report" / "curves-1.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "report" / "curves-1.svg").read_text()


def test_different_settings_are_different_sections(plain: Plain, command: Command, tmp_path: Path) -> None:
    for config in (tiny(), tiny(method="ft"), tiny({"train.epochs": 3, "augment.views": 2})):
        shutil.copytree(plain(config), tmp_path / "runs" / config.run_id)
    assert command("report", tmp_path / "runs", "--out", tmp_path / "report").code == 0
    titles = [line for line in (tmp_path / "report" / "report.md").read_text().splitlines() if line.startswith("## ")]
    assert [title.split(", ")[-1] for title in titles] == [f"{n} epochs of 2 steps a session" for n in (2, 3)]
    assert (tmp_path / "report" / "curves-2.png").exists()


def test_unfinished_runs_are_shown_as_such(plain: Plain, command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / tiny().run_id
    shutil.copytree(plain(tiny()), folder)
    results = folder / "results.json"
    results.write_text(results.read_text().replace('"finished"', '"interrupted"'))
    assert command("report", tmp_path / "runs", "--out", tmp_path / "report").code == 0
    assert "| erd | 1, unfinished |" in (tmp_path / "report" / "report.md").read_text()


def test_results_without_their_episodes_are_reported_but_not_paired(
    plain: Plain, command: Command, tmp_path: Path
) -> None:
    for config in (tiny(method="ft"), tiny()):
        shutil.copytree(plain(config), tmp_path / "runs" / config.run_id, ignore=shutil.ignore_patterns("episodes"))
    assert command("report", tmp_path / "runs", "--out", tmp_path / "report").code == 0
    assert "| erd | 0 | episodes not kept | episodes not kept |" in (tmp_path / "report" / "report.md").read_text()


def test_a_folder_without_runs_is_refused(command: Command, tmp_path: Path) -> None:
    said = command("report", tmp_path)
    assert said.code == 2
    assert "no run with results" in said.text
