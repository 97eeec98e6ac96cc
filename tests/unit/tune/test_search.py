"""The tries of a search, with runs that only say what a real one would have measured."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from conformance.tiny import TINY
from episodica.config import RunConfig
from episodica.errors import InputError, Interrupted
from episodica.sweep.recipe import Recipe
from episodica.tune import search as module
from episodica.tune.axis import parse_axis
from episodica.tune.findings import Findings
from episodica.tune.search import Search, Try
from episodica.tune.space import Space

SESSIONS = 3
Run = Callable[..., Any]


class Killed(BaseException):
    pass


def space(over: str = "train.lr=1e-4:1e-2:log") -> Space:
    return Space.of(Recipe("tiny", base=TINY), {}, [parse_axis(over)])


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, make_run) -> list[float]:
    """Runs whose accuracy is a hundred times their learning rate; a list of how far each went."""
    began: list[float] = []

    def one(config: RunConfig, out: Path, on_event: Run, stop: Callable[[], bool]) -> Any:
        began.append(config.train.lr)
        _, results = make_run("erd", 100 * config.train.lr)
        for row in results.sessions:
            on_event({"event": "result", **row.model_dump()})
            if stop() and row.session < SESSIONS:
                raise Interrupted
        return results

    monkeypatch.setattr(module, "run_one", one)
    return began


def carry_out(search: Search, attempt: Try | None, stop: bool = False) -> TrialState:
    assert attempt is not None
    return search.carry_out(attempt, lambda event: None, lambda: stop)


def finish(search: Search, tries: int) -> list[TrialState]:
    states = []
    while attempt := search.next_try(tries):
        states.append(carry_out(search, attempt))
    return states


def killed_within_the_fifth(search: Search) -> None:
    with search.working():
        for _ in range(4):
            carry_out(search, search.next_try(8))
        assert search.next_try(8) is not None
        raise Killed


def test_the_best_is_found_and_bad_tries_are_stopped_by_session(tmp_path: Path, run: list[float]) -> None:
    search = Search(space(), tmp_path)
    with search.working():
        states = finish(search, 14)
    assert len(states) == 14
    found = Findings.of(search)
    assert found.best.values["train.lr"] == pytest.approx(max(run), rel=1e-9)
    stopped = [tried for tried in found.tries if tried.state == "stopped early"]
    assert stopped
    assert {tried.sessions for tried in stopped} == {2}, "the first session judges nobody"
    assert found.mattered == {"train.lr": 1.0}
    assert found.count() == f"14 tries: {14 - len(stopped)} finished, {len(stopped)} stopped early"
    assert len(found.as_csv().splitlines()) == 15


def test_a_search_that_is_killed_goes_on_as_it_would_have(tmp_path: Path, run: list[float]) -> None:
    whole = Search(space(), tmp_path / "whole")
    with whole.working():
        finish(whole, 8)
    first = Search(space(), tmp_path / "killed")
    with pytest.raises(Killed):
        killed_within_the_fifth(first)
    second = Search(space(), tmp_path / "killed")
    with second.working():
        finish(second, 8)
    assert Findings.of(second).as_csv() == Findings.of(whole).as_csv()


def test_processes_share_a_search_and_leave_the_tries_of_others_alone(tmp_path: Path, run: list[float]) -> None:
    one, other = Search(space(), tmp_path), Search(space(), tmp_path)
    with one.working():
        mine = one.next_try(3)
        assert mine is not None
        with other.working():
            theirs = other.next_try(3)
            assert theirs is not None
            assert theirs.number != mine.number
            with pytest.raises(Interrupted):
                carry_out(other, theirs, stop=True)
        taken = one.next_try(3)
        assert taken is not None, "the other has left it behind"
        assert (taken.number, taken.config.run_id) == (theirs.number, theirs.config.run_id)
        assert taken.reported == {1}
        carry_out(one, taken)
        carry_out(one, mine)
        finish(one, 3)
        assert one.next_try(3) is None
    assert len(Findings.of(other).tries) == 3


def test_a_try_that_diverges_is_one_less_and_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(*_: object) -> None:
        raise FloatingPointError("the loss is no longer finite")

    monkeypatch.setattr(module, "run_one", diverge)
    search = Search(space(), tmp_path)
    with search.working():
        assert finish(search, 2) == [TrialState.FAIL] * 2
    with pytest.raises(InputError, match="no try has come to its end yet: the loss is no longer finite"):
        Findings.of(search).best  # noqa: B018


def test_another_search_in_the_same_folder_is_refused(tmp_path: Path, run: list[float]) -> None:
    Search(space(), tmp_path)
    Search(space(), tmp_path)
    with pytest.raises(InputError, match=r"holds a search over train.lr=0.0001:0.01:log that differs"):
        Search(space("method.p=0:1"), tmp_path)
