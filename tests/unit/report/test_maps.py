"""Which classes maps show, and what the caption says of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from episodica.engine.experiment import load_experiment, new_learner
from episodica.files.door import Folder
from episodica.report import maps
from episodica.report.aggregate import lines
from episodica.report.content import Part
from unit.report.conftest import GLYPHS


@pytest.fixture
def mapped(make_run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Part, dict[int, str]]]:
    """The part on runs of these methods and orders with untrained learners, and what the classes of an order are."""

    def make(*made: tuple[str, int]) -> tuple[Part, dict[int, str]]:
        where, classes = {}, {}
        runs = [make_run(method, **{**GLYPHS, "stream.seed": order}) for method, order in made]
        for config, _ in runs:
            experiment = load_experiment(config)
            names = [experiment.class_names[c] for c in experiment.stream.unseen.by_class()]
            classes[config.stream.seed] = ", ".join(f"{i}: {name}" for i, name in enumerate(names, start=1))
            where[config.run_id] = Folder(tmp_path) / config.run_id
            where[config.run_id].write_json("split.json", {"hash": experiment.split.hash})
        untrained = new_learner(runs[0][0], torch.device("cpu")).eval()
        monkeypatch.setattr(maps, "load_learner", lambda folder, session: untrained)
        return maps.map_part(lines(runs), where, "maps", asked=True), classes

    return make


def test_lines_are_mapped_on_an_order_that_they_share(mapped):
    part, classes = mapped(("erd", 0), ("erd", 1), ("ft", 1))
    assert classes[0] != classes[1]
    assert part.pictures[0].caption.startswith("Embeddings of 3 unseen classes")
    assert part.pictures[0].caption.endswith(f"). {classes[1]}.")


def test_classes_are_named_for_each_line_where_they_differ(mapped):
    part, classes = mapped(("erd", 0), ("ft", 1), ("ida", 1))
    assert part.pictures[0].caption.endswith(f"). erd with {classes[0]}; ft and ida with {classes[1]}.")
