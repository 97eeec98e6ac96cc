"""The way of people with images: learn, classify, remember, forget, undo, show; and kills on the way."""

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from PIL import Image

from e2e.conftest import Command, wait_for
from episodica.classifier.incoming.read import read_classes
from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import LearnOptions
from episodica.classifier.plan import plan_call
from episodica.data.glyph_drawing import draw

Start = Callable[..., "subprocess.Popen[str]"]

CLASSES, PER_CLASS, SIZE = 8, 10, 16
ALWAYS = ["--train.episodes", 4, "--epochs", 2, "--threads", 1, "--device", "cpu", "--kernels", "torch"]
NEW = [*ALWAYS, "--data.size", SIZE, "--keep", 8]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """first/: three classes, second/: two more, others/: three that are never learned, a few images each."""
    folder = tmp_path_factory.mktemp("images")
    drawings = draw(CLASSES, PER_CLASS, SIZE, 0)[0].reshape(CLASSES, PER_CLASS, SIZE, SIZE, 3)
    for c in range(CLASSES):
        part = "first" if c < 3 else "second" if c < 5 else "others"
        place = folder / part / f"letter{c}"
        place.mkdir(parents=True)
        for i in range(3 if part == "others" else PER_CLASS):
            Image.fromarray(drawings[c, i]).save(place / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def learned(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the first three classes."""
    folder = ModelFolder(tmp_path_factory.mktemp("learned") / "model")
    overrides = {"train.episodes": 4, "threads": 1, "device": "cpu", "kernels": "torch", "data.size": SIZE}
    with folder.writing():
        call = plan_call(
            folder, read_classes(images / "first").classes, LearnOptions(keep=8, epochs=2, overrides=overrides)
        )
        learn(folder, call, lambda event: None)
    return folder.path


@pytest.fixture
def model(learned: Path, tmp_path: Path) -> Path:
    return shutil.copytree(learned, tmp_path / "model")


def test_the_whole_way(images: Path, tmp_path: Path, command: Command) -> None:
    model = tmp_path / "birds"
    said = command("learn", model, images / "first", *NEW)
    assert said.code == 0, said.text
    assert "3 classes from 27 images" in said.text
    assert "knows 3 classes, 3 of them by training" in said.text
    said = command("learn", model, images / "second", *ALWAYS)
    assert said.code == 0, said.text
    assert "21 exemplars of earlier classes" in said.text
    assert "nrd (--method)" in said.text
    assert "After the call before, it was" in said.text

    said = command("classify", model, images / "second", "--json")
    answers = json.loads(said.out)
    assert said.code == 0
    assert len(answers) == 20
    assert set(answers[0]) == {"image", "class", "probability", "unknown", "strangeness", "limit", "scores"}
    assert sum(answers[0]["scores"].values()) == pytest.approx(1, abs=1e-5)
    right = sum(Path(answer["image"]).parent.name == answer["class"] for answer in answers)
    assert right > 8  # of 20, by chance 4

    said = command("classify", model, "--support", images / "others", str(images / "others" / "*" / "0.png"), "--csv")
    rows = list(csv.DictReader(StringIO(said.out)))
    assert {row["class"] for row in rows} <= {"letter5", "letter6", "letter7"}
    assert len(rows) == 3

    assert "Remembered letter5, letter6, letter7" in command("remember", model, "--support", images / "others").text
    assert len(json.loads(command("classify", model, images / "others", "--json").out)[0]["scores"]) == 8
    assert "were trained on it and stay as they are" in command("forget", model, "letter1").text
    assert "were not trained on it" in command("forget", model, "letter6").text
    for path in filter(Path.is_file, model.rglob("*")):
        assert b"letter1" not in path.read_bytes()
        assert b"letter6" not in path.read_bytes()
    said = command("show", model, "--sheet", tmp_path / "sheet.png")
    assert "letter2" in said.text
    assert "letter1" not in said.text
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.size[1] > 100
    assert json.loads(command("show", model, "--json").out)["sessions"] == 2
    assert "was to forget a class, which cannot be undone" in command("undo", model).text
    assert command("remember", model, "--support", images / "others", "--wait").code == 0
    assert "knows 6 classes" in command("undo", model).text
    assert "was to forget a class, which cannot be undone" in command("undo", model).text


def test_images_that_cannot_be_read_are_named_and_the_others_answered(
    images: Path, model: Path, tmp_path: Path, command: Command
) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    said = command("classify", model, images / "first" / "letter0" / "0.png", bad, tmp_path / "none.png", "--json")
    assert said.code == 1
    good, unreadable, missing = json.loads(said.out)
    assert good["class"] is not None
    assert "not an image" in unreadable["error"]
    assert "no such file" in missing["error"]
    assert "2 of 3 images cannot be read" in said.err
    assert "cannot be read: is not an image" in command("classify", model, bad).text
    assert command("classify", model, tmp_path / "*.gif").code == 2
    assert command("classify", model).code == 2
    assert command("classify", tmp_path / "other", bad).code == 2
    assert "put the model elsewhere" in command("learn", model, tmp_path).text


def _weights(model: Path) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in ModelFolder(model).state().weights.items()}


def test_a_killed_call_leaves_the_old_state_and_continues_to_the_same_weights(
    images: Path, model: Path, tmp_path: Path, start: Start, command: Command
) -> None:
    straight = shutil.copytree(model, tmp_path / "straight")
    assert command("learn", straight, images / "second", *ALWAYS).code == 0
    again = ["learn", model, images / "second", *ALWAYS, "--train.checkpoint_seconds", 0]
    old = ModelFolder(model).state().id
    process = start(*again)
    wait_for(lambda: any(model.glob("work/*/checkpoints/002-0*.json")), process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert ModelFolder(model).state().id == old
    said = command(*again)
    assert said.code == 0
    assert "continuing the call that was interrupted" in said.text
    assert _weights(model) == _weights(straight)
    assert not (model / "work").exists()


def test_ctrl_c_saves_and_the_same_command_continues(
    images: Path, tmp_path: Path, start: Start, command: Command
) -> None:
    model = tmp_path / "model"
    call = ["learn", model, images / "first", *NEW, "--train.episodes", 10]
    process = start(*call)
    wait_for(lambda: any(model.glob("work/*/env.json")), process)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate()
    assert process.returncode == 130
    assert "Run the same command again to continue" in printed
    assert command("show", model).code == 2
    said = command(*call)
    assert "continuing the call that was interrupted" in said.text
    assert said.code == 0


KILLS = """
import itertools, os, signal, sys
import numpy as np
from episodica.classifier.model_folder import ModelFolder

folder, touches = ModelFolder(sys.argv[1]), itertools.count(1)

def change(doomed):
    def count(event, arguments):
        if event in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
            if sys.argv[1] in os.path.abspath(str(arguments[0])) and next(touches) == doomed:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    folder.remember({"visitor": [np.full((16, 16, 3), doomed % 250, np.uint8)]})
    folder.forget("visitor")

for doomed in itertools.count(1, 6):
    child = os.fork()
    if not child:
        change(doomed)
        os._exit(0)
    _, code = os.waitpid(child, 0)
    state = folder.state()
    for stored in state.classes:
        folder.vault.load((*stored.images, *stored.held_out), state.config.image_size)
    if code != signal.SIGKILL:
        assert code == 0
        print(doomed)
        break
"""


def test_kills_all_along_a_change_leave_a_whole_state(images: Path, model: Path, command: Command) -> None:
    """Children of a process remember and forget a class, each killed six touches of the model's files later."""
    done = subprocess.run([sys.executable, "-c", KILLS, model], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30
    assert command("remember", model, "--support", images / "others").code == 0
    assert not list(model.rglob("*.part"))
    assert b"visitor" not in b"".join(path.read_bytes() for path in model.rglob("state.json"))


def test_a_full_disk_is_said_in_a_sentence(
    images: Path, model: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = command("remember", model, "--support", images / "others")
    assert said.code == 1
    assert "the disk is full" in said.err


def test_a_second_writer_waits_or_is_refused(images: Path, model: Path, start: Start, command: Command) -> None:
    with ModelFolder(model).writing():
        said = command("remember", model, "--support", images / "others")
        assert said.code == 3
        assert "choose to wait for it" in said.text
        waiting = start("remember", model, "--support", images / "others", "--wait")
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=1)
    waiting.communicate()
    assert waiting.returncode == 0
    assert len(ModelFolder(model).state().classes) == 6
