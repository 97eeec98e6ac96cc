"""Keeping what frozen blocks compute changes nothing but the time: each run against the same one without."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from conformance.tiny import outcome, tiny
from episodica.engine import embedder, evaluate, forward, frozen_part, kept_table
from episodica.engine.frozen_part import FrozenPart
from episodica.engine.run import run_one
from episodica.errors import Interrupted
from episodica.files import scratch
from episodica.registry import components

STILL = {f"augment.{name}": 0 for name in ("brightness", "contrast", "colour")} | {
    "augment.crop": "none",
    "augment.flip": False,
}
VIEWS = {"augment.views": 1, "data.per_class": 15, "stream.test_per_class": 6}  # fewer than are drawn
WAYS = {"still": STILL, "views": VIEWS}
EVERY = [(method, 1) for method in sorted(components("method"))] + [("icarl", "none"), ("podnet", "none")]

each_way = pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)


def finished(overrides: dict[str, Any], out: Path, **names: str) -> dict[str, Any]:
    config = tiny(overrides, **names)
    run_one(config, out, lambda event: None)
    return outcome(out / config.run_id)


def notices(run: dict[str, Any]) -> str:
    return "\n".join(event.get("text", "") for event in run["events"])


@pytest.fixture
def nothing_kept(monkeypatch):
    return lambda: monkeypatch.setattr(FrozenPart, "of", lambda *_: None)


@pytest.fixture
def unfolded(monkeypatch):
    """Folding a batch-norm into a convolution changes rounding, and training magnifies that: here nothing is folded."""
    for module in (embedder, evaluate, forward, frozen_part):
        monkeypatch.setattr(module, "folded", lambda network: deepcopy(network).eval())


@pytest.mark.usefixtures("unfolded")
@pytest.mark.parametrize(("method", "train"), EVERY)
def test_a_run_of_every_method_has_the_bits_of_one_without(method, train, tmp_path, nothing_kept):
    changes = {**STILL, "backbone.train": train}
    kept = finished(changes, tmp_path / "kept", method=method)
    nothing_kept()
    assert kept == finished(changes, tmp_path / "anew", method=method)


@pytest.mark.usefixtures("unfolded")
@each_way
@pytest.mark.parametrize("learner", sorted(components("learner")))
def test_a_run_of_every_learner_has_the_bits_of_one_without(learner, how, tmp_path, nothing_kept):
    changes = {**how, "backbone.train": 1}
    kept = finished(changes, tmp_path / "kept", learner=learner)
    nothing_kept()
    assert kept == finished(changes, tmp_path / "anew", learner=learner)


def test_folding_changes_the_first_loss_by_rounding_alone(tmp_path, nothing_kept):
    changes = {**STILL, "backbone.train": 1}
    kept = finished(changes, tmp_path / "kept")
    nothing_kept()
    anew = finished(changes, tmp_path / "anew")
    one, two = (next(e for e in run["events"] if e["event"] == "step")["loss"]["meta"] for run in (kept, anew))
    assert one == pytest.approx(two, rel=1e-5)


@each_way
def test_a_table_on_the_disk_gives_the_same_bits(how, tmp_path, monkeypatch):
    in_memory = finished({**how, "backbone.train": 1}, tmp_path / "memory")
    monkeypatch.setattr(kept_table, "VALUES_IN_MEMORY", 0)
    assert finished({**how, "backbone.train": 1}, tmp_path / "disk") == in_memory


def test_without_room_it_is_computed_anew_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_table, "VALUES_IN_MEMORY", 0)
    monkeypatch.setattr(scratch, "SHARE", 0.0)
    assert "EPISODICA_CACHE" in notices(finished({**STILL, "backbone.train": 1}, tmp_path))


@each_way
def test_a_continued_run_computes_the_same_bits(how, tmp_path):
    changes = {**how, "backbone.train": 1}
    whole = finished(changes, tmp_path / "whole")
    config, steps = tiny(changes), 0

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return steps == 6  # in the second session

    with pytest.raises(Interrupted):
        run_one(config, tmp_path / "parts", lambda event: None, stop)
    assert finished(changes, tmp_path / "parts") == whole


def test_fresh_random_views_are_said_to_be_costly(tmp_path):
    assert "3 blocks of the backbone are frozen" in notices(finished({"backbone.train": 1}, tmp_path / "fresh"))
    assert "augment.views" not in notices(finished({"backbone.train": 1, **STILL}, tmp_path / "still"))


def test_each_image_goes_through_the_frozen_blocks_once(tmp_path, monkeypatch):
    seen: list[int] = []
    compute = FrozenPart._compute
    monkeypatch.setattr(FrozenPart, "_compute", lambda self, pixels: seen.append(len(pixels)) or compute(self, pixels))
    finished({**STILL, "backbone.train": 1}, tmp_path)
    assert sum(seen) <= 12 * 30 + 1  # all images, and the one that told the shape
