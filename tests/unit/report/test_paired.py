"""Paired differences against the textbook, on episodes written by hand."""

import math
import statistics
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from episodica.errors import InputError
from episodica.records.files import write_json
from episodica.report.paired import paired
from episodica.rng import generator


@pytest.fixture
def written(tmp_path: Path, make_run):
    def write(name: str, values: dict[str, list[float]], **changes) -> Path:
        config, results = make_run("erd", **{"eval.episodes": len(values["unseen"])})
        folder = tmp_path / name
        (folder / "episodes").mkdir(parents=True)
        (folder / "config.yaml").write_text(yaml.safe_dump(config.tree()))
        write_json(folder / "results.json", results.model_copy(update=changes).to_json())
        named = {f"3way-1shot-{pool}": np.array(v) for pool, v in values.items()}
        np.savez_compressed(folder / "episodes" / "session-003.npz", **named)  # type: ignore[arg-type]
        return folder

    return write


def accuracies(name: str, episodes: int = 40) -> dict[str, list[float]]:
    return {pool: torch.rand(episodes, generator=generator(name, pool)).tolist() for pool in ("unseen", "1", "2")}


def test_differences_are_taken_episode_by_episode(written):
    one, two = accuracies("one"), accuracies("two")
    found = paired(written("one", one), written("two", two))
    apart = {pool: [a - b for a, b in zip(one[pool], two[pool], strict=True)] for pool in one}
    interval = {pool: 1.96 * statistics.stdev(d) / math.sqrt(len(d)) for pool, d in apart.items()}
    assert found["meta_test"].mean == pytest.approx(statistics.fmean(apart["unseen"]))
    assert found["meta_test"].ci95 == pytest.approx(interval["unseen"])
    assert found["seen"].mean == pytest.approx(statistics.fmean(apart["1"] + apart["2"]))
    assert found["seen"].ci95 == pytest.approx(math.hypot(interval["1"], interval["2"]) / 2)


def test_only_the_same_questions_can_be_paired(written):
    ours = written("ours", accuracies("a"))
    with pytest.raises(InputError, match="same split"):
        paired(ours, written("elsewhere", accuracies("b"), split_hash="another"))
    with pytest.raises(InputError, match="different questions"):
        paired(ours, written("shorter", accuracies("b", episodes=30)))
    with pytest.raises(InputError, match="needs the accuracy of each episode"):
        paired(ours, written("whole", accuracies("b")), session=2)
