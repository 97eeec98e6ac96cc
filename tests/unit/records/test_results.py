import json
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.records.results import Ledger, Mean, Results, forgetting, mean_over_tasks, wilson_interval

accuracies = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=50)
histories = st.integers(1, 6).flatmap(
    lambda n: st.tuples(*(st.lists(st.floats(0, 1), min_size=t + 1, max_size=t + 1) for t in range(n)))
)


@given(accuracies)
def test_an_interval_is_that_of_a_mean_over_episodes(values):
    found = Mean.of(values)
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert found.ci95 == pytest.approx(1.96 * statistics.stdev(values) / len(values) ** 0.5, abs=1e-9)
    assert found.ci95 == pytest.approx(1.96 * np.std(values, ddof=1) / np.sqrt(len(values)), abs=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2)), min_size=1, max_size=9))
def test_intervals_of_tasks_add_in_squares(tasks):
    found = mean_over_tasks([Mean(mean=mean, ci95=ci) for mean, ci in tasks])
    assert found.mean == pytest.approx(np.mean([mean for mean, _ in tasks]))
    assert found.ci95 == pytest.approx(np.linalg.norm([ci for _, ci in tasks]) / len(tasks))


@given(st.integers(1, 400), st.floats(0, 1))
def test_the_interval_of_a_share_holds_what_is_1_96_deviations_away_at_most(count, share):
    low, high = wilson_interval(share, count)
    assert 0 <= low <= share <= high <= 1 or share == pytest.approx(low) or share == pytest.approx(high)
    for end in {low, high} - {0.0, 1.0}:
        assert abs(share - end) == pytest.approx(1.96 * (end * (1 - end) / count) ** 0.5, rel=1e-5, abs=1e-9)


@given(histories)
def test_forgetting_is_the_mean_loss_since_the_best(history):
    """history[s][t] is the accuracy of task t after session s."""
    *before, now = history
    found = forgetting([dict(enumerate(means)) for means in before], dict(enumerate(now)))
    if len(history) == 1:
        assert found is None
        return
    losses = []
    for t in range(len(history) - 1):
        best = max(history[s][t] for s in range(t, len(history) - 1))
        losses.append(best - now[t])
    assert found == pytest.approx(sum(losses) / len(losses), abs=1e-12)


def test_forgetting_may_be_negative():
    assert forgetting([{1: 0.5}], {1: 0.7, 2: 0.1}) == pytest.approx(-0.2)


@pytest.fixture
def ledger(make_config) -> Ledger:
    """Two sessions of a run that is evaluated with 1 and 2 shots."""
    ledger = Ledger(make_config({"eval.shots": [1, 2]}), "hash")
    for session in range(2):
        names = ["unseen", *map(str, range(1, session + 2))]
        values = {
            (name, shape): np.array([0.2, 0.4]) + 0.1 * shape.shots + 0.1 * place - 0.05 * session
            for shape in ledger.sessions
            for place, name in enumerate(names)
        }
        ledger.add(4 + 3 * session, values, 1.0, 2.0)
    return ledger


def test_a_ledger_keeps_a_row_for_each_session_and_shape(ledger):
    results = ledger.results("running")
    assert [row.session for row in results.sessions] == [1, 2]
    assert [row.classes_seen for row in results.sessions] == [4, 7]
    last = results.sessions[-1]
    assert last.meta_test.model_dump() == pytest.approx({"mean": 0.35, "ci95": 1.96 * 0.1, "episodes": 2})
    assert [(task.task, task.mean) for task in last.per_task] == [(1, pytest.approx(0.45)), (2, pytest.approx(0.55))]
    assert last.seen.mean == pytest.approx(0.5)
    assert [row.forgetting for row in results.sessions] == [None, pytest.approx(0.05)]
    assert results.average is not None
    assert results.average.meta_test == pytest.approx((0.4 + 0.35) / 2)
    assert results.average.seen == pytest.approx((0.5 + 0.5) / 2)
    (other,) = results.evaluations
    assert (other.way, other.shots, len(other.sessions)) == (3, 2, 2)
    assert other.sessions[0].meta_test.mean == pytest.approx(0.5)


def test_a_ledger_survives_json(ledger):
    copy = Ledger(ledger.config, "hash")
    copy.restore(json.loads(json.dumps(ledger.to_json())))
    assert copy.results("finished") == ledger.results("finished")


def test_results_survive_json(ledger):
    results = ledger.results("finished")
    written = json.loads(json.dumps(results.to_json()))
    assert written["schema"] == 1
    assert Results.from_json(written) == results


def test_results_say_what_was_run(ledger):
    found, config = ledger.results("finished"), ledger.config
    assert (found.run, found.method, found.status) == (config.run_id, "erd", "finished")
    assert found.shape == {"way": 3, "shots": 1, "queries": 2}
    assert (found.tasks, found.seed, found.scale, found.split_hash) == (3, 0, 1.0, "hash")


def test_before_the_first_session_there_is_no_average(make_config):
    results = Ledger(make_config(), "hash").results("running")
    assert (results.sessions, results.average) == ([], None)
