"""Results that no run measured: the run that has them says so in the report, and the others are shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from episodica.records.run import RunFolder
from episodica.report import write
from episodica.report.build import build
from episodica.report.discovery import find_runs
from episodica.report.write import write_report

HUGE = 1.7e308


@pytest.fixture(autouse=True)
def no_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fonts take most of the time of a report, and have nothing to do with numbers."""
    monkeypatch.setattr(write, "ENDINGS", ("svg", "png"))


@pytest.fixture
def out(tmp_path: Path, make_run) -> Path:
    for method in ("ft", "erd"):
        config, results = make_run(method)
        with RunFolder(tmp_path / "runs", config) as run:
            run.write_results(results)
    return tmp_path / "runs"


def change(out: Path, name: str, edit: Any) -> None:
    (path,) = out.glob(f"ft-*/{name}")
    tree = json.loads(path.read_text())
    edit(tree)
    path.write_text(json.dumps(tree))


RESULTS = {
    "an endless number": lambda tree: tree["sessions"][0]["meta_test"].update(mean=float("inf")),
    "a number without a sum": lambda tree: tree["sessions"][0]["seen"].update(mean=HUGE),
    "a task's": lambda tree: tree["sessions"][0]["per_task"][0].update(mean=HUGE),
    "a session far away": lambda tree: tree["sessions"][0].update(session=10**12),
    "no shape": lambda tree: tree.update(shape={}),
    "another shape": lambda tree: tree.update(shape={"way": -1, "shots": 10**18}),
    "no average": lambda tree: tree.update(average=None),
    "an average without a sum": lambda tree: tree.update(average={"meta_test": HUGE, "seen": HUGE}),
    "no state": lambda tree: tree.update(status="\x1b[31m"),
    "evaluations of nothing": lambda tree: tree.update(
        evaluations=[{"way": 5, "shots": 1, "sessions": [], "average": None}]
    ),
}


@pytest.mark.parametrize("case", RESULTS)
def test_one_run_does_not_hide_the_others(out: Path, tmp_path: Path, case: str) -> None:
    change(out, "results.json", RESULTS[case])
    page = write_report([out], tmp_path / "report").read_text()
    assert "erd-" in page
    assert "ft-" in page


def test_more_tasks_than_a_page_can_show(out: Path) -> None:
    (config,) = out.glob("ft-*/config.yaml")
    config.write_text(config.read_text().replace("tasks:", "tasks: 3000000000 #"))
    remark = next(one.remark for one in find_runs([out]) if "ft-" in one.place)
    assert "3,000,000,000 tasks: a report shows 1,000 at most" in remark


def test_a_failure_of_ours_is_that_run_s_alone(out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(found: Any, *options: Any) -> Any:
        if any(one.run and one.config.method.name == "ft" for one in found):
            raise ZeroDivisionError("unexpected")
        return build(found, *options)

    monkeypatch.setattr(write, "build", fails)
    write_report([out], tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text()
    assert "it cannot be shown: ZeroDivisionError: unexpected" in page
    assert (tmp_path / "report" / "tables" / "1-meta_test.csv").exists()
