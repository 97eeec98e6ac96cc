"""What events tell, and what damaged ones do not break."""

import json

import pytest

from episodica.watch.run_events import RunEvents


def events(*events: object) -> RunEvents:
    state = RunEvents()
    for event in events:
        state.feed(event if isinstance(event, bytes) else json.dumps(event).encode())
    return state


def step(session: int, step: int, seconds: float, **loss: float) -> dict[str, object]:
    return {"event": "step", "session": session, "step": step, "seconds": seconds, "loss": loss or {"meta": 1.0}}


def test_steps_count_over_sessions_and_terms_may_come_later():
    state = events(step(1, 10, 1), step(1, 20, 2), step(2, 10, 1, meta=3.0, distill=0.5))
    assert state.position.starts == [0, 20]
    assert [at for at, _ in state.terms["meta"].points()] == [10, 20, 30]
    assert state.terms["distill"].points() == [(30, 0.5)]
    assert (state.position.session, state.position.step, state.loss) == (2, 10, {"meta": 3.0, "distill": 0.5})


def test_speed_is_that_of_the_last_logged_steps():
    slow = [step(1, 10 * n, 10.0 * n) for n in range(1, 20)]
    fast = [step(1, 190 + 10 * n, 190 + n) for n in range(1, 20)]
    assert events(*slow).position.speed == pytest.approx(1)
    assert events(*slow, *fast).position.speed == pytest.approx(10)
    assert events().position.speed is None


def test_notices_are_kept_and_other_events_are_not_in_the_way():
    state = events({"event": "notice", "session": 1, "text": "few classes"}, {"event": "something new"})
    assert list(state.notices) == ["few classes"]
    assert state.warning is None
    assert state.damaged == 0


def test_a_warning_stays_however_many_notices_follow():
    told = [{"event": "notice", "session": 1, "text": text} for text in ("WARNING: not unseen", *["few classes"] * 200)]
    state = events(*told)
    assert state.warning == "not unseen"
    assert "WARNING: not unseen" not in state.notices


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"event": ["step"]}',
        b'{"event": "step"}',
        b'{"event": "step", "session": 1, "step": "ten", "seconds": 1, "loss": {}}',
        b'{"event": "step", "session": 1, "step": 10, "seconds": NaN, "loss": {}}',
        b'{"event": "step", "session": 1, "step": 10, "seconds": 1, "loss": {"meta": Infinity}}',
        b'{"event": "step", "session": 1, "step": 10, "seconds": 1, "loss": [1]}',
        b'{"event": "step", "session": -1, "step": 10, "seconds": 1, "loss": {}}',
        b'{"event": "step", "session": 1, "step": 1' + b"0" * 400 + b', "seconds": 1, "loss": {}}',
        b'{"event": "step", "session": 1, "step": 10, "seconds": 1' + b"0" * 400 + b', "loss": {}}',
        b'{"event": "result", "session": 1}',
        b"[" * 100_000,
    ],
)
def test_damaged_lines_are_counted_and_skipped(line):
    state = events(step(1, 10, 1), line, step(1, 20, 2))
    assert state.damaged == 1
    assert state.position.step == 20
    assert [at for at, _ in state.terms["meta"].points()] == [10, 20]


def test_what_is_kept_is_bounded():
    state = events(*(step(1, n, n, **{f"term{n}": 1.0}) for n in range(1, 3000)))
    assert len(state.lines) <= 60
    assert len(state.terms) <= 24
