"""The files for clusters that users copy: they can be read, and the command in each is one that there is."""

import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from e2e.conftest import Command

FILES = Path(__file__).parents[2] / "packaging" / "cluster"
SCRIPTS = sorted(FILES.glob("*.sh"))


def planned(command: Command, line: str) -> int:
    """The runs of a line `episodica run ...`, without where they are computed."""
    words = shlex.split(line)
    words = words[words.index("episodica") + 1 :]
    assert ("--on" in words) == ("--address" in words)
    return command(*words, "--dry-run", "--json").code


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_shell_and_their_command_is_one(script: Path, command: Command) -> None:
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    (line,) = (line for line in script.read_text().splitlines() if line.strip().startswith("episodica run"))
    assert planned(command, line.replace("$SLURM_ARRAY_TASK_ID", "1")) == 0


def test_the_job_of_kubernetes_is_one_of_kuberay(command: Command) -> None:
    job = yaml.safe_load((FILES / "kuberay.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert planned(command, job["spec"]["entrypoint"]) == 0
    cluster = job["spec"]["rayClusterSpec"]
    pinned = (FILES.parents[1] / "constraints.txt").read_text()
    assert f"\nray=={cluster['rayVersion']}\n" in pinned
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        assert [mount["name"] for mount in container["volumeMounts"]] == [volume["name"] for volume in pod["volumes"]]
