"""What is printed while runs train, on a terminal and elsewhere."""

from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from episodica.cli.progress_bars import ProgressBars
from episodica.cli.stages import left
from episodica.config import RunConfig

OnEvent = Callable[[Mapping[str, Any]], None]


@pytest.fixture
def configs(make_config: Callable[..., RunConfig]) -> list[RunConfig]:
    return [make_config(seed=seed) for seed in range(60)]


def bars_on(configs: list[RunConfig], **how: Any) -> tuple[ProgressBars, StringIO]:
    written = StringIO()
    console = Console(file=written, width=100, height=20, color_system=None, **how)
    return ProgressBars(console, {config.run_id: f"erd [{config.seed}]" for config in configs}), written


def at(event: str, session: int = 1, **values: Any) -> dict[str, Any]:
    return {"event": event, "session": session, "sessions": 2, "steps": 10, **values}


def result(session: int, unseen: float) -> dict[str, Any]:
    values = {
        "classes_seen": 5,
        "meta_test": {"mean": unseen, "ci95": 0.01, "episodes": 10},
        "seen": {"mean": 0.5, "ci95": 0.02},
        "per_task": [],
        "forgetting": None,
        "seconds_train": 3.0,
        "seconds_eval": 1.0,
    }
    return at("result", session, **values)


def train(on_event: OnEvent) -> None:
    on_event(at("session"))
    on_event(at("step", step=5, epoch=1, seconds=1.0, loss={"meta": 1.5}))
    on_event(at("evaluation"))
    on_event(result(1, 0.421))
    on_event(at("session", 2))
    on_event(at("step", 2, step=5, epoch=1, seconds=1.0, loss={"meta": 1.5}))


def test_in_a_pipe_every_session_and_every_end_is_a_plain_line(configs: list[RunConfig]) -> None:
    bars, written = bars_on(configs[:2])
    with bars:
        first, second = (bars.on_event_for(config) for config in configs[:2])
        first({"event": "started", "host": "far", "process": 12, "node": "x"})
        train(first)
        first({"event": "finished"})
        second({"event": "failed"})
    lines = written.getvalue().splitlines()
    assert lines[:2] == [
        "erd [0]  on far, process 12",
        "erd [0]  task 1/2  meta-test 42.1 ± 1.0  seen 50.0 ± 2.0  3 s",
    ]
    assert lines[2].startswith("erd [0]  finished  unseen 42.1  seen 50.0  1 of 2 runs finished; ")
    assert lines[3:] == ["erd [1]  failed  1 of 2 runs finished (1 failed)"]


def test_a_terminal_shows_the_runs_at_work_and_the_sum(configs: list[RunConfig]) -> None:
    bars, written = bars_on(configs, force_terminal=True)
    with bars:
        listeners = [bars.on_event_for(config) for config in configs]
        listeners[0]({"event": "found"})
        train(listeners[1])
        train(listeners[2])
        listeners[2]({"event": "finished"})
        train(listeners[3])
        written.truncate(0)
        written.seek(0)
        bars._live.refresh()  # type: ignore[union-attr]
        frame = [line.strip() for line in written.getvalue().splitlines() if "erd" in line or "runs" in line]
    assert len(frame) == 3
    for line, seed in zip(frame, (1, 3), strict=False):
        assert f"erd [{seed}]" in line
        assert "task 2/2" in line
        assert "unseen 42.1  seen 50.0" in line
        assert line.endswith("left")
    assert frame[2].startswith("2 of 60 runs finished (1 before)")
    assert frame[2].endswith("left")


def test_one_run_has_no_sum(configs: list[RunConfig]) -> None:
    bars, written = bars_on(configs[:1])
    with bars:
        on_event = bars.on_event_for(configs[0])
        train(on_event)
        on_event({"event": "notice", "text": "[odd] classes"})
        on_event({"event": "finished"})
    assert written.getvalue().splitlines()[1:] == [
        "erd [0]: [odd] classes",
        "erd [0]  finished  unseen 42.1  seen 50.0",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0.2, "0:00 left"), (59.6, "1:00 left"), (3725, "1:02:05 left")]
)
def test_time_left_in_words(seconds: float | None, text: str) -> None:
    assert left(seconds) == text
