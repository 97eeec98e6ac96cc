"""A run from its start to its records: notices, failures, and what is left to do after a kill."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.tiny import tiny
from episodica.data import augment
from episodica.engine.access import SessionAccess
from episodica.engine.experiment import load_experiment
from episodica.engine.fused import accelerate
from episodica.engine.fused.build import CannotBuild
from episodica.engine.run import run_one
from episodica.errors import Interrupted
from episodica.records.run import ERROR_LOG, RunFolder


def silent(event: Any) -> None:
    """Nobody watches."""


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernels() -> None:
        raise CannotBuild("there is no compiler")

    monkeypatch.setattr(accelerate, "kernels", kernels)


def notices(folder: Path) -> list[str]:
    events = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    return [event["text"] for event in events if event["event"] == "notice"]


@pytest.mark.usefixtures("without_compiler")
def test_what_is_noticed_before_the_first_step_is_in_the_log_too(tmp_path: Path) -> None:
    config = tiny({"kernels": "auto"})
    run_one(config, tmp_path, silent)
    assert "slower than it could be: there is no compiler" in notices(tmp_path / config.run_id)


@pytest.mark.usefixtures("without_compiler")
def test_a_run_that_lacks_only_its_last_word_is_finished_by_it(tmp_path: Path) -> None:
    config = tiny({"kernels": "auto"})
    results = run_one(config, tmp_path, silent)
    (tmp_path / config.run_id / "results.json").unlink()
    assert run_one(config, tmp_path, silent) == results


def test_a_compressed_memory_holds_more_images_in_the_same_bytes(tmp_path: Path) -> None:
    plain, compressed = tiny(), tiny({"memory.quality": 20})
    for config in (plain, compressed):
        run_one(config, tmp_path, silent)
    kept = {
        config.memory.quality: [len(c["rows"]) for c in exemplars["classes"].values()]
        for config in (plain, compressed)
        for exemplars in [json.loads((tmp_path / config.run_id / "exemplars.json").read_text())]
    }
    assert set(kept[None]) == {plain.memory.per_class}
    assert min(kept[20]) > plain.memory.per_class  # type: ignore[operator]


def test_new_images_go_through_the_codec_too_and_those_of_evaluation_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, plain = tiny({"memory.quality": 20}), SessionAccess.images
    experiment, read = load_experiment(config), []

    def images(access: SessionAccess, rows: torch.Tensor) -> torch.Tensor:
        found = plain(access, rows)
        read.append((rows, found))
        return found

    monkeypatch.setattr(SessionAccess, "images", images)
    run_one(config, tmp_path, silent)
    store = experiment.compressed
    assert store is not None
    assert all(torch.equal(found, store.read(rows)) for rows, found in read)
    seen = set(torch.cat([rows for rows, _ in read]).tolist())
    assert all(seen & set(pool.images().tolist()) for pool in experiment.stream.train), "images of every task"
    rows = next(iter(experiment.stream.train)).images()
    assert torch.equal(experiment.pixels(rows), augment.plain(experiment.store.read(rows), config.augment))


def test_a_failed_run_that_goes_on_has_not_failed(tmp_path: Path) -> None:
    config = tiny()
    with RunFolder(tmp_path, config) as folder:
        log = folder.path / ERROR_LOG
        log.write_text("RuntimeError: it was the weather")
    with pytest.raises(Interrupted):
        run_one(config, tmp_path, silent, stop=lambda: True)
    assert not log.exists()
