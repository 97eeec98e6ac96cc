"""`episodica tune` from a recipe to the recipe of the best."""

from pathlib import Path

import pytest
import yaml

from conformance.tiny import TINY
from e2e.conftest import Command, words
from episodica.config import resolve_stored
from episodica.sweep.grid import plan
from episodica.sweep.recipe import load_recipe

SMALL = {**TINY, "data.classes": 14, "stream.tasks": 2, "train.epochs": 1, "eval.episodes": 10}


def test_settings_are_chosen_on_validation_classes(command: Command, tmp_path: Path) -> None:
    over = ("--over", "method.p=0:1", "--over", "memory.select=ntc,random", "--stream.validation_classes", 4)
    said = command("tune", *words(SMALL), *over, "--tries", 3, "--out", tmp_path)
    assert said.code == 0, said
    assert "Searching over method.p=0:1:0.2, memory.select=ntc,random." in said.text
    assert "3 tries: 3 finished, so that its own number flatters it" in said.text
    assert len((tmp_path / "tries.csv").read_text().splitlines()) == 4
    assert (tmp_path / "what-mattered.png").read_bytes().startswith(b"\x89PNG")
    (best,) = plan(load_recipe(str(tmp_path / "best.yaml")), {})
    assert best.stream.validation_classes == 0
    for folder in (tmp_path / "runs").iterdir():
        assert resolve_stored(yaml.safe_load((folder / "config.yaml").read_text())).stream.validation_classes == 4
    again = command("tune", *words(SMALL), *over, "--tries", 3, "--out", tmp_path)
    assert again.code == 0
    assert "try 4" not in again.text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--over", "method.p=0:1", "--tries", 0), "at least 1"),
        ((), "nothing to choose"),
        (("--over", "method.p=0:1"), "stands for 3 runs"),
        (("--method.name", "erd", "--over", "method.p=0:1", "--stream.validation_classes", 0), "for the end"),
    ],
)
def test_what_cannot_be_searched(command: Command, words: tuple[object, ...], reason: str) -> None:
    said = command("tune", "quickstart", *words)
    assert said.code == 2
    assert reason in said.text
