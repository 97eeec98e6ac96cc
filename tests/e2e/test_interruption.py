"""Kill -9, Ctrl-C and a second process: a run loses time at most."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from conformance.tiny import TINY, outcome, tiny
from e2e.conftest import Command, wait_for, words
from episodica.config import RunConfig
from episodica.engine.checkpoint import Checkpoints
from episodica.files.door import Folder
from episodica.records.run import RunFolder

Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[[RunConfig], Path]

STEPS = 20
LONG = {**TINY, "stream.tasks": 2, "train.epochs": 4, "train.episodes": 5, "eval.episodes": 3000}


def _moments(folder: Path) -> dict[str, Callable[[], bool]]:
    """Moments to die at, in the order in which they come."""
    saved = folder / "checkpoints"
    return {
        "first checkpoint": lambda: any(saved.glob("001-0*.json")),
        "while one is written": lambda: any(saved.glob(".001-*.part")),
        "evaluation": (saved / f"001-{STEPS:08d}.json").exists,
        "some time in the second session": lambda: any(saved.glob("002-0*.json")) and time.sleep(0.2) is None,
        "last evaluation": (saved / f"002-{STEPS:08d}.json").exists,
    }


def test_kill_at_any_moment_and_the_same_command_again_give_the_same_numbers_and_weights(
    start: Start, command: Command, plain: Run, tmp_path: Path
) -> None:
    config = tiny(LONG)
    arguments = ["run", *words(LONG), "--train.checkpoint_seconds=0", "--out", tmp_path]
    saved, reached = Checkpoints(Folder(tmp_path / config.run_id / "checkpoints")), (0, 0)
    for happened in _moments(tmp_path / config.run_id).values():
        process = start(*arguments)
        wait_for(happened, process)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        progress = saved.latest()
        assert progress is not None
        assert saved.tensors(progress)
        assert (progress.session, progress.step) >= reached
        reached = progress.session, progress.step
    assert command(*arguments).code == 0
    assert outcome(tmp_path / config.run_id) == outcome(plain(config))


def test_ctrl_c_saves_says_how_to_continue_and_changes_nothing(
    start: Start, command: Command, plain: Run, tmp_path: Path
) -> None:
    config = tiny(LONG)
    folder = tmp_path / config.run_id
    process = start("run", *words(LONG), "--out", tmp_path)
    wait_for((folder / "env.json").exists, process)
    process.send_signal(signal.SIGINT)
    printed, complaints = process.communicate()
    assert process.returncode == 130
    assert "Interrupted; everything is saved. Run the same command again to continue." in printed
    assert complaints == "stopping after this step; press Ctrl-C again to stop at once\n"
    assert json.loads((folder / "results.json").read_text())["status"] == "interrupted"
    (checkpoint,) = (json.loads(path.read_text()) for path in folder.glob("checkpoints/*.json"))
    assert 0 < checkpoint["step"] <= STEPS
    assert command("run", *words(LONG), "--out", tmp_path).code == 0
    assert outcome(folder) == outcome(plain(config))


def test_a_second_process_leaves_the_folder_to_the_first(start: Start, tmp_path: Path) -> None:
    config = tiny()
    with RunFolder(tmp_path, config) as folder:
        before = sorted(folder.path.rglob("*"))
        process = start("run", *words(TINY), "--out", tmp_path)
        said = " ".join(" ".join(process.communicate()).split())
        assert process.returncode == 3
        assert f"another process works on {folder.path}: wait for it, stop it, or choose another output folder" in said
        assert "Traceback" not in said
        assert sorted(folder.path.rglob("*")) == before
