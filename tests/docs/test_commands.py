"""Every command line in the pages is one that the command takes: verb, options, recipe and key paths."""

import re
import shlex
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from cyclopts import CycloptsError

from docs.pages import PAGES, blocks, inline_code, name_of
from episodica.classifier.options import LearnOptions, check_overrides
from episodica.cli import VERBS
from episodica.cli.overrides import parse
from episodica.cli.screen import app
from episodica.config.flat import flatten
from episodica.errors import InputError
from episodica.registry import find
from episodica.sweep.grid import plan
from episodica.sweep.recipe import default_recipe, load_recipe
from episodica.sweep.selection import Only
from episodica.tune.axis import parse_axis
from episodica.tune.space import Space

PLACEHOLDERS = {  # names that stand for what a reader has, and an example of each
    "NAME": "quickstart",
    "RECIPE": "quickstart",
    "my_recipe.yaml": "quickstart",
    "mine:Small": "conv4",
    "ablation_$recipe": "ablation_p",
    "S": "1",
    "erd/best.yaml": "quickstart",
    "ida/best.yaml": "quickstart",
}
NOT_HERE = "nor on this machine"  # a model that a reader fetches first: its name was understood


@pytest.fixture(scope="module", autouse=True)
def _all_verbs() -> None:
    for module in VERBS.values():
        import_module(f"episodica.cli.{module}")


def commands_in(page: Path) -> Iterator[list[str]]:
    for block in blocks(page):
        for line in re.sub(r"\\\n\s*", "", block.text).splitlines():
            found = re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*episodica (?=[a-z-])(.*)", line)
            if found and block.language in ("", "sh"):
                yield _words(found[1])
    for code in inline_code(page):
        if re.match(r"episodica [a-z]", code):
            yield _words(code.removeprefix("episodica "))


def _words(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    return [PLACEHOLDERS.get(word, word) for word in words if word not in ("...", "[NAME]")]


def check(words: Sequence[str]) -> None:
    """Raises what the command would complain about before it looks at any file."""
    verb, *rest = words
    if verb not in VERBS:
        raise InputError(f'there is no verb "{verb}"')
    if not rest:
        return  # it may be named without what it needs
    _, bound, *_ = app.parse_args(list(words), exit_on_error=False, print_error=False)
    given = bound.arguments
    if verb == "run":
        name, overrides = parse(given.get("tokens", ()))
        conditions = [Only.parse(text) for text in given.get("only") or []]
        plan(
            load_recipe(name or default_recipe(overrides)),
            overrides,
            conditions,
            given.get("orders"),
            given.get("seeds"),
        )
    elif verb == "tune":
        name, overrides = parse(given.get("tokens", ()))
        axes = [parse_axis(text) for text in given.get("over") or []]
        Space.of(load_recipe(name or default_recipe(overrides)), flatten(overrides), axes)
    elif "tokens" in given:
        _check_settings(verb, *parse(given["tokens"]))


def _check_settings(verb: str, name: str | None, overrides: dict[str, Any]) -> None:
    if verb == "data":
        assert name is not None
        find("dataset", name)
        plan(load_recipe("folder"), {"data.root": "DIR", **overrides}, [], None, None)
    else:
        assert name is None, name
        check_overrides(LearnOptions(overrides=overrides), first=True)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_of_a_page_are_taken(page: Path) -> None:
    wrong = []
    for words in commands_in(page):
        try:
            check(words)
        except (InputError, CycloptsError) as error:
            if NOT_HERE not in str(error):
                wrong.append(f"episodica {shlex.join(words)}: {error}")
    assert not wrong, "\n".join(wrong)


def test_there_are_commands_and_wrong_ones_are_found() -> None:
    assert sum(1 for page in PAGES for _ in commands_in(page)) > 100
    for line in ("runn", "run no_recipe", "run quickstart --method.q 1", "learn m i --keeep 3", "bench speed"):
        with pytest.raises((InputError, CycloptsError)):
            check(line.split())
