"""`episodica bench`, on settings so small that nothing is measured but that it works."""

import json
from pathlib import Path

import pytest
import torch

from e2e.conftest import Command
from episodica.bench import data, evaluation, evaluation_workload, first_use, pairs, peak, start, training
from episodica.bench.arithmetic import Conv
from episodica.bench.training import Setting
from episodica.bench.workload import DEFAULT, Workload
from episodica.engine.fused.build import kernels

QUICK = ("--threads", 1, "--rounds", 1, "--steps", 1, "--clock", "cpu")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    scenes = (Setting(Workload(size=16), "still"), Setting(Workload(size=16, how=DEFAULT), "moving"))
    monkeypatch.setattr(training, "SETTINGS", scenes)
    monkeypatch.setattr(start, "COMMANDS", ("--version",))
    monkeypatch.setattr(first_use, "CASES", {"cache": first_use.build_data})
    monkeypatch.setattr(first_use, "GLYPHS", ("list",))
    monkeypatch.setattr(peak, "SHAPES", (Conv(16, 16, 8), Conv(8, 8, 8)))
    monkeypatch.setattr(data, "SIZE", 16)
    for name, value in {"UNSEEN": 6, "TEST": 20, "ALL": 24, "SIZE": 16, "EPISODES": 4}.items():
        monkeypatch.setattr(evaluation_workload, name, value)
    for module in (evaluation, pairs):
        monkeypatch.setattr(module, "SAMPLE", 2)


def test_everything_but_growth_is_shown_and_saved(tiny: None, command: Command, tmp_path: Path) -> None:
    threads, file = torch.get_num_threads(), tmp_path / "rows.json"
    said = command("bench", *QUICK, "--json", file)
    assert said.code == 0, said.err
    assert torch.get_num_threads() == threads
    saved = json.loads(file.read_text())
    assert saved["machine"]["threads"] == 1
    assert {row["part"] for row in saved["rows"]} >= {
        "Start, CPU time",
        "From the command to its first use",
        "still",
        "moving",
        "Images of a step, augmented",
    }
    for row in saved["rows"]:
        assert row["name"] in said.out
        assert row["ms"] > 0
        assert len(row["rounds"]) == 1
        assert (row["of_peak"] is not None) == (row["part"] in ("still", "moving"))
    assert "the peer spends" in said.out


def test_a_part_is_printed_as_markdown_and_once(tiny: None, command: Command) -> None:
    said = command("bench", "data", "data", *QUICK, "--markdown")
    assert said.code == 0, said.err
    assert said.out.count("Images of a step, plain") == 1
    assert "| Images of a step, plain | ms | ratio | of peak |" in said.out
    assert "Relation" not in said.out


def test_what_cannot_be_measured_is_said(
    tiny: None, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new" / "rows.json"
    monkeypatch.setenv("CXX", "no-such-compiler")
    kernels.cache_clear()
    said = command("bench", "data", *QUICK, "--json", file)
    assert said.code == 0, said.err
    assert "Plain torch alone is measured: there is no C++ compiler `no-such-compiler`" in said.err
    saved = json.loads(file.read_text())
    assert saved["machine"]["kernel_path"] == "torch"
    assert not any("fused" in row["name"] for row in saved["rows"])


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    tiny: None, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "rows.json"):
        said = command("bench", "data", *QUICK, "--json", place)
        assert said.code == 2
        assert "cannot be written" in said.err
        assert "measuring" not in said.err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(("speed",), "training"), (("data", "--rounds", 0), ">= 1"), (("data", "--clock", "cpu"), "--threads 1")],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[object, ...], word: str, command: Command) -> None:
    said = command("bench", *arguments)
    assert said.code == 2
    assert word in said.text
