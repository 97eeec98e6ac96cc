"""Metrics, drift and answers as they come."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.classifier.model_folder import ModelFolder
from episodica.serve.app import guarded
from episodica.serve.drift import FEWEST, WEEK, Drift, smirnov
from episodica.serve.metrics import BOUNDS, Metrics
from unit.serve.conftest import Client
from unit.serve.test_app import classify, form

numbers = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=20)


@given(numbers, numbers)
def test_the_distance_is_the_largest_gap_of_shares(one: list[float], other: list[float]) -> None:
    def share(values: list[float], up_to: float) -> float:
        return sum(value <= up_to for value in values) / len(values)

    expected = max(abs(share(one, v) - share(other, v)) for v in one + other)
    assert smirnov(np.array(one), np.array(other)) == pytest.approx(expected)


def test_drift_is_of_the_last_week_and_of_one_state() -> None:
    now = [0.0]
    drift, held_out = Drift(clock=lambda: now[0]), np.linspace(0, 1, 200)
    drift.note("a", np.linspace(0, 1, 100))
    assert not drift.distance("a", held_out).moved
    assert drift.distance("a", None).value is None
    assert drift.distance("b", held_out).images == 0
    drift.note("a", [3.0] * 200)
    found = drift.distance("a", held_out)
    assert found.moved
    assert found.warning is not None
    assert drift.mark
    now[0] = WEEK + 1
    drift.note("a", [0.5] * (FEWEST - 1))
    assert drift.distance("a", held_out) == (None, FEWEST - 1, False)
    drift.note("b", [1.0])
    assert drift.distance("b", held_out).images == 1


def test_the_text_is_what_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.request("GET", '/a"b\\', 200, 0.03)
    metrics.request("GET", '/a"b\\', 200, 100.0)
    metrics.images.update([True, False, False, False])
    lines = metrics.text(0.25, 40, moved=False).splitlines()
    assert 'episodica_requests_total{method="GET",route="/a\\"b\\\\",status="200"} 2' in lines
    assert 'episodica_request_seconds_bucket{route="/a\\"b\\\\",le="0.05"} 1' in lines
    assert 'episodica_request_seconds_bucket{route="/a\\"b\\\\",le="+Inf"} 2' in lines
    assert 'episodica_request_seconds_sum{route="/a\\"b\\\\"} 100.03' in lines
    assert "episodica_unknown_share 0.25" in lines
    assert "episodica_drift 0.25" in lines
    assert len([line for line in lines if "_bucket" in line]) == len(BOUNDS) + 1
    assert all(line.startswith(("# HELP episodica_", "# TYPE episodica_", "episodica_")) for line in lines)


def test_what_was_asked_is_counted_by_route(client: Client, glyphs: np.ndarray) -> None:
    classify(client, glyphs[0, 0], glyphs[1, 1])
    for path in ("/invented", "/images/" + "0" * 32, "/images/" + "1" * 32):
        client.get(path)
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'episodica_requests_total{method="POST",route="/classify",status="200"} 1' in answer.text
    assert 'episodica_requests_total{method="GET",route="/images/{digest}",status="404"} 2' in answer.text
    assert 'route="other",status="404"} 1' in answer.text
    assert "invented" not in answer.text
    counts = [float(line.split()[-1]) for line in answer.text.splitlines() if line.startswith("episodica_images_total")]
    assert sum(counts) == 2


def test_metrics_need_the_token(folder: ModelFolder) -> None:
    client = Client(guarded(folder, token="a-token-of-16-or-more"))
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"authorization": "Bearer a-token-of-16-or-more"}).status_code == 200


def test_lines_are_the_answers_and_a_bad_image_does_not_stop_them(client: Client, glyphs: np.ndarray) -> None:
    files = form("images", glyphs[0, 0], glyphs[1, 1])
    files.insert(1, ("images", ("bad.png", b"no image", "image/png")))
    answer = client.post("/classify", files=files, headers={"accept": "application/jsonl"})
    assert answer.headers["content-type"].startswith("application/jsonl")
    first, bad, last = map(json.loads, answer.text.splitlines())
    assert bad["image"] == "bad.png"
    assert "error" in bad
    whole = classify(client, glyphs[0, 0], glyphs[1, 1])
    assert [{**one, "state": whole["state"]} for one in whole["answers"]] == [first, last]


def test_lines_are_not_for_support_images(client: Client, glyphs: np.ndarray) -> None:
    files = form("images", glyphs[0, 0]) + form("support", glyphs[1, 0])
    answer = client.post(
        "/classify", files=files, data={"support_class": ["x"]}, headers={"accept": "application/x-ndjson"}
    )
    assert answer.status_code == 422
