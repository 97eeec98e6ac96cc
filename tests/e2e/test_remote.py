"""The command with photos and models in a bucket: a local S3 server on the loopback device."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from e2e.conftest import Command
from episodica.data.glyph_drawing import draw

BUCKET, SIZE, CLASSES, PER_CLASS = "bucket", 16, 4, 6

Put = Callable[[str, bytes], object]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Put]:
    """Put an object into a bucket, of which the environment tells the command as it would of any."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    httpx.post(
        f"http://{host}:{port}/moto-api/reset"
    )  # what an earlier server of this process was given is still there
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        "EPISODICA_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    client: Any = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    try:
        yield lambda name, data: client.put_object(Bucket=BUCKET, Key=name, Body=data)
    finally:
        client.close()
        server.stop()


@pytest.fixture
def photos(put: Put, tmp_path: Path) -> Path:
    """In the bucket below `photos`, and in this folder."""
    glyphs = draw(CLASSES, PER_CLASS, SIZE, 0)[0].reshape(CLASSES, PER_CLASS, SIZE, SIZE, 3)
    for c, i in np.ndindex(CLASSES, PER_CLASS):
        path = tmp_path / "photos" / f"glyph {c}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(glyphs[c, i]).save(path)
        put(f"photos/{path.parent.name}/{path.name}", path.read_bytes())
    put("photos/", b"")  # what consoles make where one clicks on "new folder"
    return tmp_path / "photos"


def test_a_data_set_in_a_bucket_is_read_as_from_a_folder(command: Command, photos: Path, put: Put) -> None:
    check = ("data", "check", "folder", "--json", "--stream.tasks", "1", "--root")
    here, there = command(*check, photos), command(*check, f"s3://{BUCKET}/photos")
    assert (there.code, json.loads(there.out)) == (0, json.loads(here.out))
    put("photos/glyph 0/more.png", (photos / "glyph 1" / "0.png").read_bytes())
    assert json.loads(command(*check, f"s3://{BUCKET}/photos").out)["class_sizes"]["glyph 0"] == PER_CLASS + 1


def test_a_model_learns_from_a_bucket_and_answers_from_it(
    command: Command, photos: Path, put: Put, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    how = ("--backbone.name", "conv4", "--epochs", "1", "--keep", "2")
    learned = command("learn", model, f"s3://{BUCKET}/photos", *how)
    assert learned.code == 0, learned.text
    for path in model.rglob("*"):
        if path.is_file():
            put(f"model/{path.relative_to(model).as_posix()}", path.read_bytes())
    put("model/evil.sh", b"never fetched")
    here = command("classify", model, photos, "--csv").out
    there = command("classify", f"s3://{BUCKET}/model", f"s3://{BUCKET}/photos", "--csv")
    assert there.code == 0, there.text
    assert there.out == here.replace(str(photos), f"s3://{BUCKET}/photos")
    assert not list((tmp_path / "cache").rglob("evil.sh"))
    refused = command("forget", f"s3://{BUCKET}/model", "glyph 0")
    assert (refused.code, "is only read" in refused.text) == (2, True)


def test_without_the_server_the_copy_is_used_and_said_so(
    command: Command, photos: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = command("data", "check", "folder", "--root", f"s3://{BUCKET}/photos", "--json")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    again = command("data", "check", "folder", "--root", f"s3://{BUCKET}/photos", "--json")
    assert again.out == first.out
    assert "on this machine is used" in caplog.text
    never = command("data", "check", "folder", "--root", f"s3://{BUCKET}/never", "--json")
    assert (never.code, "try again online" in never.text) == (2, True)


def test_nothing_there_is_said(command: Command, put: Put) -> None:
    said = command("data", "check", "folder", "--root", f"s3://{BUCKET}/nothing", "--json")
    assert (said.code, f"there is nothing at s3://{BUCKET}/nothing" in said.text) == (2, True)
