"""`episodica serve`: what it says before it serves, who is answered, and how it ends."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("uvicorn")

from e2e.conftest import Command
from episodica.classifier.model_folder import ModelFolder
from episodica.data.glyph_drawing import draw

MakeModel = Callable[[Path], ModelFolder]
TOKEN = "0123456789abcdef-%41"


@pytest.fixture
def model(make_model: MakeModel, tmp_path: Path) -> Path:
    folder = make_model(tmp_path / "model")
    folder.remember({"ant": list(draw(1, 2, 32, 0)[0])})
    return folder.path


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["{}"], "is no model and not empty (it has notes.txt)"),
        (["{}", "--host", "0.0.0.0"], "needs a token"),
        (["{}", "--host", "0.0.0.0", "--token", "short"], "16 characters"),
    ],
)
def test_what_cannot_be_served_is_said(command: Command, tmp_path: Path, arguments: list[str], remedy: str) -> None:
    (tmp_path / "notes.txt").write_text("something else")
    said = command("serve", *(text.format(tmp_path) for text in arguments))
    assert said.code == 2
    assert remedy in said.text


def test_where_there_is_no_model_it_begins_one_and_writes_nothing(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    process = start("serve", tmp_path / "birds", "--port", 0)
    assert process.stdout is not None
    assert "no model birds yet: this one is empty" in process.stdout.readline()
    address = re.search(r"http://\S+", process.stdout.readline())
    assert address is not None
    with urlopen(address[0] + "model", timeout=60) as answer:
        assert json.load(answer)["new"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not (tmp_path / "birds").exists()


def _status(home: str, **headers: str) -> int:
    try:
        with urlopen(Request(home + "classes", headers=headers), timeout=60) as answer:
            return answer.status
    except HTTPError as refused:
        return refused.code


def test_elsewhere_it_answers_who_has_the_token_until_ctrl_c(
    start: Callable[..., "subprocess.Popen[str]"], model: Path
) -> None:
    process = start("serve", model, "--host", "0.0.0.0", "--port", 0, "--token", TOKEN)
    assert process.stdout is not None
    address = re.search(r"http://\S+", process.stdout.readline())
    assert address is not None
    home = address[0].replace("0.0.0.0", "127.0.0.1")
    with urlopen(home + "health", timeout=60) as answer:
        assert json.load(answer) == {"status": "ok"}
    assert _status(home) == 401
    assert _status(home, Authorization="Bearer 0123456789abcdef") == 401
    assert _status(home, Authorization=f"Bearer {TOKEN}") == 200
    assert _status(home, Authorization=f"Bearer {TOKEN}", Host="elsewhere.example") == 421
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert TOKEN not in out
    assert err == ""
