"""`episodica list` shows every component with every field."""

import pytest

from e2e.conftest import Command
from episodica.config import paths
from episodica.registry import components
from episodica.sweep.recipe import packaged_recipes

PARTS = {"methods": "method", "learners": "learner", "backbones": "backbone", "datasets": "dataset"}
SECTIONS = {"methods": "method", "learners": "learner", "backbones": "backbone", "datasets": "data"}


@pytest.mark.parametrize("what", PARTS)
def test_a_part_shows_its_components_and_no_others(what: str, command: Command) -> None:
    said = command("list", what)
    assert said.code == 0
    for other, kind in PARTS.items():
        for name in components(kind):
            assert (f"{SECTIONS[other]}.name: {name}" in said.text) == (other == what)


def test_recipes_are_shown_with_what_they_are_about(command: Command) -> None:
    said = command("list", "recipes")
    assert said.code == 0
    assert all(name in said.text and recipe.about in said.text for name, recipe in packaged_recipes().items())


@pytest.mark.parametrize("arguments", [[], ["all"]])
def test_everything_shows_every_field_of_every_config(arguments: list[str], command: Command) -> None:
    said = command("list", *arguments)
    assert said.code == 0
    assert [path for path in paths() if not path.endswith(".name") and f"--{path} " not in said.text] == []


def test_config_shows_the_fields_of_every_run(command: Command) -> None:
    said = command("list", "config")
    assert said.code == 0
    assert "--train.lr 0.001 learning rate" in said.text
    assert "--seed 0 decides initialisation" in said.text
    assert "--method." not in said.text


def test_an_unknown_part_is_refused(command: Command) -> None:
    said = command("list", "everything")
    assert said.code == 2
    assert "methods" in said.err
