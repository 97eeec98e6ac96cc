"""The job array of docs/cluster.md, each of its jobs as a scheduler would start it."""

import json
import re
from pathlib import Path

import pytest

from conformance.tiny import TINY
from e2e.conftest import Command, words

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"


def test_the_jobs_of_the_documented_array_are_all_runs_once(command: Command) -> None:
    array = re.search(
        r"^#SBATCH --array=1-(\d+) .*?^episodica (run [^\n]*)$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert array is not None
    jobs, line = int(array[1]), array[2]
    found = []
    for job in range(1, jobs + 1):
        said = command(*line.replace("$SLURM_ARRAY_TASK_ID", str(job)).split(), "--dry-run", "--json")
        assert said.code == 0
        found += [run["run"] for run in json.loads(said.out)]
    whole = command("run", "table3", "--data.root", "/shared/data", "--dry-run", "--json")
    assert sorted(found) == sorted(run["run"] for run in json.loads(whole.out))
    assert len(found) == jobs


def test_parts_that_are_run_leave_one_folder_for_each_run(command: Command, tmp_path: Path) -> None:
    small = {**TINY, "stream.tasks": 1, "train.epochs": 1, "eval.episodes": 5, "seed": [0, 1]}
    for part in ("1/2", "2/2"):
        said = command("run", *words(small), "--part", part, "--out", tmp_path)
        assert said.code == 0
        assert len(re.findall("finished", said.text)) == 1
    assert len(list(tmp_path.glob("*/results.json"))) == 2
    assert "part 3 of 3 has no run" in command("run", *words(small), "--part", "3/3", "--out", tmp_path).text


@pytest.mark.parametrize("part", ["0/2", "x"])
def test_what_is_no_part(command: Command, part: str) -> None:
    assert command("run", "quickstart", "--part", part).code == 2
