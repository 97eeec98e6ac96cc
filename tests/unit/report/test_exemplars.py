"""Thumbnails of exemplars, and the reasons for their absence."""

import json
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from episodica.engine.experiment import load_experiment
from episodica.files.door import Folder
from episodica.report import exemplars
from episodica.report.aggregate import Line, lines
from episodica.report.content import Part
from episodica.report.exemplars import exemplar_parts, load_as_run
from unit.report.conftest import GLYPHS


@pytest.fixture
def kept(make_run, tmp_path: Path) -> tuple[Line, dict[str, Folder]]:
    """A run that keeps two training images of each class, as it would have written them."""
    config, results = make_run("erd", **{**GLYPHS, "memory.per_class": 4})
    experiment = load_experiment(config)
    rows = {c: rows[:2].tolist() for pool in experiment.stream.train for c, rows in pool.by_class().items()}
    (tmp_path / "split.json").write_text(json.dumps({"hash": experiment.split.hash}))
    (tmp_path / "exemplars.json").write_text(json.dumps({"classes": {c: {"rows": r} for c, r in rows.items()}}))
    return lines([(config, results)])[0], {config.run_id: Folder(tmp_path)}


def test_a_strip_a_class_in_the_order_of_arrival(kept: tuple[Line, dict[str, Folder]]):
    line, where = kept
    (part,) = exemplar_parts([line], where, allowed=True)
    experiment = load_experiment(line.config)
    arrived = [experiment.class_names[c] for pool in experiment.stream.train for c in pool.by_class()]
    assert [strip.name for strip in part.strips] == arrived
    image = Image.open(BytesIO(b64decode(part.strips[0].image.split(",")[1])))
    assert image.size == (2 * 16 + 2, 16)


def test_images_are_shown_only_when_allowed_and_only_of_methods_that_keep_any(kept, make_run):
    line, where = kept
    (part,) = exemplar_parts([line], where, allowed=False)
    assert not part.strips
    assert "--images" in part.about
    assert exemplar_parts(lines([make_run("ft")]), where, allowed=True) == []


def test_a_run_is_shown_where_its_device_is_not(kept):
    line, where = kept
    config, results = line.runs[0]
    elsewhere = lines([(config.model_copy(update={"device": "cuda:7"}), results)])
    (part,) = exemplar_parts(elsewhere, where, allowed=True)
    assert part.strips
    assert load_as_run(elsewhere[0].config, where[config.run_id]).device.type == "cpu"


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("exemplars.json", None, "is missing"),
        ("exemplars.json", '{"classes": 3}', "is damaged"),
        ("exemplars.json", '{"classes": {"0": {"rows": [99999]}}}', "does not have"),
        ("split.json", None, "cannot be told"),
        ("split.json", '{"hash": "another"}', "another split"),
    ],
)
def test_what_cannot_be_shown_says_why(kept, file: str, content: str | None, reason: str):
    line, where = kept
    path = where[line.config.run_id].path / file
    path.unlink() if content is None else path.write_text(content)
    (part,) = exemplar_parts([line], where, allowed=True)
    assert isinstance(part, Part)
    assert not part.strips
    assert reason in part.about


@pytest.mark.parametrize("root", ["s3://strangers/photos", "http://127.0.0.1/photos", "file:///etc"])
def test_an_address_is_opened_only_where_the_user_has_named_it(kept, root: str, monkeypatch: pytest.MonkeyPatch):
    line, where = kept
    config, results = line.runs[0]
    strange = config.model_copy(update={"data": config.data.model_copy(update={"root": root})})
    opened = []
    monkeypatch.setattr(exemplars, "load_experiment", lambda config: opened.append(config) or load_experiment(config))
    (part,) = exemplar_parts(lines([(strange, results)]), where, allowed=True)
    assert "EPISODICA_TRUST" in part.about
    assert root not in part.about
    assert not opened
    monkeypatch.setenv("EPISODICA_TRUST", root)
    (part,) = exemplar_parts(lines([(strange, results)]), where, allowed=True)
    assert part.strips  # of glyphs, which are drawn and not read
