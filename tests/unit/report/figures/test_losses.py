"""Loss terms as they were logged, and averaged to what a picture can show."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.files.door import Folder
from episodica.report.figures.losses import averaged, read_losses

EVENTS = [
    {"event": "session", "session": 1},
    {"event": "step", "session": 1, "step": 10, "loss": {"meta": 2.0}},
    {"event": "step", "session": 1, "step": 20, "loss": {"meta": 1.0}},
    {"event": "result", "session": 1},
    {"event": "session", "session": 2},
    {"event": "step", "session": 2, "step": 10, "loss": {"meta": 1.5, "distill_m": 0.5}},
]


def test_steps_are_counted_over_all_sessions(tmp_path: Path):
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    losses = read_losses(Folder(tmp_path))
    assert losses.terms == {"meta": ([10, 20, 30], [2.0, 1.0, 1.5]), "distill_m": ([30], [0.5])}
    assert losses.begins == [0, 20]
    assert losses.unreadable == 0


def test_damaged_lines_are_counted(tmp_path: Path):
    lines = [json.dumps(EVENTS[0]), '{"event": "st', "[1]", '{"event": "step", "loss": 3}', json.dumps(EVENTS[1])]
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    losses = read_losses(Folder(tmp_path))
    assert losses.unreadable == 3
    assert losses.terms == {"meta": ([10], [2.0])}


def test_a_run_without_a_log_has_no_terms(tmp_path: Path):
    assert read_losses(Folder(tmp_path)).terms == {}


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=200), st.integers(1, 50))
def test_averaged_curves_keep_their_sum(values, points):
    steps = list(range(len(values)))
    at, means = averaged(steps, values, points)
    assert len(at) == len(means) <= points
    width = -(-len(values) // points)
    counts = [len(values[begin : begin + width]) for begin in range(0, len(values), width)]
    assert sum(mean * count for mean, count in zip(means, counts, strict=True)) == pytest.approx(sum(values), abs=1e-6)
