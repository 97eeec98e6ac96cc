"""Runs in processes of their own end as runs in this one do."""

import json
from collections.abc import Iterator, Mapping
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conformance.tiny import outcome, tiny
from episodica.config import RunConfig
from episodica.sweep.executor import Outcome
from episodica.sweep.in_turn import InTurn
from episodica.sweep.side_by_side import MEMORY_OF_A_RUN, SideBySide, local, processes_for


@pytest.fixture(autouse=True)
def image_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPISODICA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def never() -> bool:
    return False


def ignoring(config: RunConfig) -> Any:
    return lambda event: None


def grid(**changes: Any) -> list[RunConfig]:
    return [tiny({"threads": None, "seed": seed, **changes}) for seed in range(2)]


MUCH = 64 * MEMORY_OF_A_RUN


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.none() | st.integers(1, 4))
def test_no_core_has_two_threads(runs: int, cores: int, rooms: int, threads: int | None) -> None:
    configs = [tiny({"threads": threads, "seed": seed}) for seed in range(runs)]
    processes = processes_for(configs, cores, rooms * MEMORY_OF_A_RUN)
    assert 1 <= processes <= max(1, rooms)
    assert processes == 1 or processes * (threads or cores // processes) <= cores


@pytest.mark.parametrize(
    ("runs", "cores", "processes", "each"), [(3, 2, 2, 1), (2, 4, 2, 2), (5, 8, 5, 1), (9, 9, 9, 1)]
)
def test_cores_are_shared_by_as_many_runs_as_there_are(runs: int, cores: int, processes: int, each: int) -> None:
    configs = [tiny({"threads": None, "seed": seed}) for seed in range(runs)]
    assert processes_for(configs, cores, MUCH) == processes
    assert cores // processes == each


def test_one_core_or_one_run_needs_no_other_process() -> None:
    assert local(grid(), cores=1) == local(grid()[:1], cores=8) == InTurn()


def test_threads_that_the_user_chose_are_kept() -> None:
    assert processes_for(grid(threads=2), 2, MUCH) == 1
    assert processes_for(grid(threads=1), 2, MUCH) == 2


def test_memory_is_shared_too() -> None:
    assert processes_for(grid(), 2, MEMORY_OF_A_RUN) == 1


def test_results_events_and_files_are_those_of_runs_one_after_another(tmp_path: Path) -> None:
    good, bad = tiny({"threads": None}), tiny({"threads": None, "data.per_class": 9})
    events: list[tuple[str, Mapping[str, Any]]] = []
    found = SideBySide(processes=2).run(
        [bad, good],
        tmp_path / "both",
        lambda config: lambda event: events.append((config.run_id, event)),
        never,
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = InTurn().run([bad, good], tmp_path / "one", ignoring, never)
    torch.set_num_threads(threads)
    assert [config.run_id for config, _ in found.finished] == [good.run_id]
    assert [(config.run_id, str(e)) for config, e in found.failed] == [(bad.run_id, str(e)) for _, e in expected.failed]
    assert not found.interrupted
    assert outcome(tmp_path / "both" / good.run_id) == outcome(tmp_path / "one" / good.run_id)
    assert [e["event"] for run, e in events if run == good.run_id][-1] == "finished"
    assert json.loads((tmp_path / "both" / good.run_id / "env.json").read_text())["threads"] == 1


def test_runs_are_listed_in_the_order_in_which_they_were_given() -> None:
    first, second = grid()
    outcome = Outcome()
    for config in (second, first):
        outcome.note(config, RuntimeError("full disk"))
    assert [config for config, _ in outcome.in_order_of([first, second]).failed] == [first, second]


def test_a_killed_process_is_a_failed_run_and_a_wish_to_stop_is_heard(tmp_path: Path) -> None:
    killed, stopped, never_begun = (tiny({"threads": None, "seed": s, "train.episodes": 2000}) for s in range(3))
    begun: list[RunConfig] = []

    def watcher(config: RunConfig) -> Any:
        def watch(event: Mapping[str, Any]) -> None:
            if event["event"] == "step":
                begun.append(config)
                if config is killed:
                    (process,) = active_children()
                    process.kill()

        return watch

    found = SideBySide(1).run([killed, stopped, never_begun], tmp_path, watcher, lambda: stopped in begun)
    assert found.interrupted
    assert found.finished == []
    assert never_begun not in begun
    ((config, error),) = found.failed
    assert config is killed
    assert "ended with code -9" in str(error)
