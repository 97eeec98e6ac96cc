"""The pictures of the concepts are those that their script draws, from the committed runs."""

import re
import sys

import pytest

from docs.pages import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))
from drawings import DRAWINGS, PLACE


def _without_pixels(svg: str) -> str:
    """Tiles are compressed with loss, which another version of the library may do otherwise."""
    return re.sub(r"base64,[^\"]+", "base64,", svg)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_is_as_its_script_draws_it(name: str) -> None:
    stored = (PLACE / f"{name}.svg").read_text()
    assert _without_pixels(DRAWINGS[name]().svg()) == _without_pixels(stored), "say `make drawings`"
    assert not re.search(r"(href|src)=\"(?!data:)", stored)


def test_every_picture_is_drawn() -> None:
    assert {path.stem for path in PLACE.iterdir()} == set(DRAWINGS)
