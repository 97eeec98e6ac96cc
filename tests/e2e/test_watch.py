"""`episodica watch`: what it says before it serves, and how it ends."""

import re
import signal
import socket
from pathlib import Path
from urllib.request import urlopen

import pytest

pytest.importorskip("uvicorn")

from unit.watch.fake_run import FakeRun


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["{}/nowhere"], "does not exist: give the folder that runs are written to"),
        (["{}/file"], "is not a folder"),
        (["{}", "--host", "0.0.0.0"], "needs a token"),
        (["{}", "--host", "0.0.0.0", "--token", "short"], "16 characters"),
        (["{}", "--host", "no such host", "--token", "0123456789abcdef"], "is no address"),
        (["{}", "--port", "70000"], "70000"),
    ],
)
def test_what_cannot_be_served_is_said(command, tmp_path, arguments, remedy):
    (tmp_path / "file").touch()
    said = command("watch", *(text.format(tmp_path) for text in arguments))
    assert said.code == 2
    assert remedy in said.text


def test_a_port_in_use(command, tmp_path):
    with socket.create_server(("localhost", 0)) as taken:
        said = command("watch", tmp_path, "--port", taken.getsockname()[1])
    assert said.code == 2
    assert "is in use" in said.text
    assert "--port 0" in said.text


def test_it_serves_until_ctrl_c_even_while_a_page_is_open(start, tmp_path: Path):
    FakeRun(tmp_path / "ft-1").whole()
    process = start("watch", tmp_path, "--port", 0)
    home = re.search(r"http://\S+", process.stdout.readline())
    assert home is not None
    with urlopen(home[0] + "api/events", timeout=60) as stream:
        assert stream.readline() == b"event: runs\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "The page has ended." in out
    assert err == ""
