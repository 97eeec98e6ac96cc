"""Paired differences against the textbook, on episodes written by hand."""

import math
import statistics
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from episodica.errors import InputError
from episodica.files.atomic import write_json
from episodica.files.door import Folder
from episodica.report.comparison import Run
from episodica.report.paired import paired, paired_table
from episodica.report.settings import by_setting
from episodica.rng import generator

ONE_SHOT = {"way": 3, "shots": 1}


@pytest.fixture
def written(tmp_path: Path, make_run):
    def write(name: str, values: dict[str, list[float]], **changes) -> Path:
        config, results = make_run("erd", **{"eval.episodes": len(values["unseen"])})
        named = {f"3way-1shot-{pool}": np.array(v) for pool, v in values.items()}
        return write_run(tmp_path / name, (config, results.model_copy(update=changes)), named)

    return write


def write_run(folder: Path, run: Run, episodes: dict[str, np.ndarray]) -> Path:
    config, results = run
    (folder / "episodes").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config.tree()))
    write_json(folder / "results.json", results.to_json())
    np.savez_compressed(folder / "episodes" / "session-003.npz", **episodes)  # type: ignore[arg-type]
    return folder


def accuracies(name: str, episodes: int = 40) -> dict[str, list[float]]:
    return {pool: torch.rand(episodes, generator=generator(name, pool)).tolist() for pool in ("unseen", "1", "2")}


def test_differences_are_taken_episode_by_episode(written):
    one, two = accuracies("one"), accuracies("two")
    found = paired(Folder(written("one", one)), Folder(written("two", two)), ONE_SHOT)
    apart = {pool: [a - b for a, b in zip(one[pool], two[pool], strict=True)] for pool in one}
    interval = {pool: 1.96 * statistics.stdev(d) / math.sqrt(len(d)) for pool, d in apart.items()}
    assert found["meta_test"].mean == pytest.approx(statistics.fmean(apart["unseen"]))
    assert found["meta_test"].ci95 == pytest.approx(interval["unseen"])
    assert found["seen"].mean == pytest.approx(statistics.fmean(apart["1"] + apart["2"]))
    assert found["seen"].ci95 == pytest.approx(math.hypot(interval["1"], interval["2"]) / 2)


def test_only_the_same_questions_can_be_paired(written):
    ours = written("ours", accuracies("a"))
    with pytest.raises(InputError, match="same split"):
        paired(Folder(ours), Folder(written("elsewhere", accuracies("b"), split_hash="another")), ONE_SHOT)
    with pytest.raises(InputError, match="different questions"):
        paired(Folder(ours), Folder(written("shorter", accuracies("b", episodes=30))), ONE_SHOT)
    (ours / "episodes" / "session-003.npz").unlink()
    with pytest.raises(InputError, match="needs the accuracy of each episode"):
        paired(Folder(ours), Folder(written("whole", accuracies("b"))), ONE_SHOT)


def test_each_section_pairs_the_shape_that_it_is_about(tmp_path: Path, make_run):
    """One shot sets the runs apart by 10 points, two by 20."""
    runs = [make_run(method, **{"eval.shots": [1, 2]}) for method in ("ft", "erd")]
    where = {}
    for run, better in zip(runs, (0.0, 0.1), strict=True):
        named = {f"3way-{k}shot-{pool}": np.array([0.5, 0.6]) + better * k for k in (1, 2) for pool in ("unseen", "1")}
        where[run[0].run_id] = Folder(write_run(tmp_path / run[0].run_id, run, named))
    for (ft, erd), apart in zip(by_setting(runs), ("+10.0", "+20.0"), strict=True):
        table = paired_table([ft, erd], ft, where, "pairs")
        assert table is not None
        assert [cell.number for cell in table.rows[0].cells] == ["0", "0", apart, apart]


@given(cut=st.integers(0, 900), flipped=st.integers(0, 255))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_episodes_are_named(cut, flipped, tmp_path_factory, make_run):
    folder = tmp_path_factory.mktemp("pair")
    run = make_run("erd", **{"eval.episodes": 40})
    episodes = {f"3way-1shot-{pool}": np.array(v) for pool, v in accuracies("a").items()}
    ours, theirs = (write_run(folder / name, run, episodes) for name in ("ours", "theirs"))
    path = ours / "episodes" / "session-003.npz"
    content = bytearray(path.read_bytes())
    path.write_bytes(bytes(content[:cut]))
    with pytest.raises(InputError, match=r"session-003\.npz is damaged .*: restore it"):
        paired(Folder(ours), Folder(theirs), ONE_SHOT)
    content[cut] ^= flipped
    path.write_bytes(bytes(content))
    with suppress(InputError):  # nothing else, whichever byte it is
        paired(Folder(ours), Folder(theirs), ONE_SHOT)
