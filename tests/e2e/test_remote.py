"""The command with photos and models at an address: S3, Google Cloud Storage and the Hugging Face Hub, served here."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
from fsspec.config import conf
from PIL import Image

from e2e.conftest import Command
from episodica.data.glyph_drawing import draw
from unit.classifier.sharing.stub_hub import StubHub, serving

BUCKET, SIZE, CLASSES, PER_CLASS = "bucket", 16, 4, 6


class Place(NamedTuple):
    address: str
    put: Callable[[str, bytes], object]  # a file, by its name there


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Place]:
    """A bucket, of which the environment tells the command as it would of any."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    httpx.post(f"http://{host}:{port}/moto-api/reset")  # what a server of this process was given before is still there
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
    }.items():
        monkeypatch.setenv(name, value)
    client: Any = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    try:
        yield Place(f"s3://{BUCKET}", lambda name, data: client.put_object(Bucket=BUCKET, Key=name, Body=data))
    finally:
        client.close()
        server.stop()


@pytest.fixture
def gs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    from gcp_storage_emulator.server import create_server

    server: Any = create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET)
    server.start()
    there = f"http://127.0.0.1:{server._api._httpd.server_port}"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", there)
    upload = f"{there}/upload/storage/v1/b/{BUCKET}/o"

    def put(name: str, data: bytes) -> None:
        parts = [("application/json", json.dumps({"name": name}).encode()), ("image/png", data)]
        body = b"".join(b"--cut\r\nContent-Type: %b\r\n\r\n%b\r\n" % (kind.encode(), part) for kind, part in parts)
        headers = {"Content-Type": "multipart/related; boundary=cut"}
        asked = {"uploadType": "multipart"}
        httpx.post(upload, params=asked, headers=headers, content=body + b"--cut--").raise_for_status()

    try:
        yield Place(f"gs://{BUCKET}", put)
    finally:
        server.stop()


@pytest.fixture
def hf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    hub, repository = StubHub(), "datasets/some-one/pictures"
    hub.put(repository, {".gitattributes": b""})

    def put(name: str, data: bytes) -> None:
        if not name.endswith("/"):  # git knows files alone
            hub.put(repository, {**(hub.files(repository, "main") or {}), name: data})

    with serving(hub) as address:
        monkeypatch.setitem(conf, "hf", {"endpoint": address})  # as HF_ENDPOINT, which is read on import
        yield Place(f"hf://{repository}", put)


@pytest.fixture
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Place:
    monkeypatch.setenv("EPISODICA_CACHE", str(tmp_path / "cache"))
    return request.getfixturevalue(getattr(request, "param", "s3"))


everywhere = pytest.mark.parametrize("place", ["s3", "gs", "hf"], indirect=True)


@pytest.fixture
def photos(place: Place, tmp_path: Path) -> Path:
    """At the address below `photos`, and in this folder."""
    glyphs = draw(CLASSES, PER_CLASS, SIZE, 0)[0].reshape(CLASSES, PER_CLASS, SIZE, SIZE, 3)
    for c, i in np.ndindex(CLASSES, PER_CLASS):
        path = tmp_path / "photos" / f"glyph {c}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(glyphs[c, i]).save(path)
        place.put(f"photos/{path.parent.name}/{path.name}", path.read_bytes())
    place.put("photos/", b"")  # what consoles make where one clicks on "new folder"
    return tmp_path / "photos"


@everywhere
def test_a_data_set_at_an_address_is_read_as_from_a_folder(command: Command, photos: Path, place: Place) -> None:
    check = ("data", "check", "folder", "--json", "--stream.tasks", "1", "--root")
    here, there = command(*check, photos), command(*check, f"{place.address}/photos")
    assert (there.code, there.err) == (0, "")
    assert json.loads(there.out) == json.loads(here.out)
    place.put("photos/glyph 0/more.png", (photos / "glyph 1" / "0.png").read_bytes())
    assert json.loads(command(*check, f"{place.address}/photos").out)["class_sizes"]["glyph 0"] == PER_CLASS + 1


@pytest.mark.parametrize("place", ["s3", "gs"], indirect=True)
def test_a_model_learns_from_a_bucket_and_answers_from_it(
    command: Command, photos: Path, place: Place, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    how = ("--backbone.name", "conv4", "--epochs", "1", "--keep", "2")
    learned = command("learn", model, f"{place.address}/photos", *how)
    assert learned.code == 0, learned.text
    for path in model.rglob("*"):
        if path.is_file():
            place.put(f"model/{path.relative_to(model).as_posix()}", path.read_bytes())
    place.put("model/evil.sh", b"never fetched")
    here = command("classify", model, photos, "--csv").out
    there = command("classify", f"{place.address}/model", f"{place.address}/photos", "--csv")
    assert there.code == 0, there.text
    assert there.out == here.replace(str(photos), f"{place.address}/photos")
    assert not list((tmp_path / "cache").rglob("evil.sh"))
    refused = command("forget", f"{place.address}/model", "glyph 0")
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


@everywhere
def test_nothing_there_is_said(command: Command, place: Place) -> None:
    said = command("data", "check", "folder", "--root", f"{place.address}/nothing", "--json")
    assert (said.code, f"there is nothing at {place.address}/nothing" in said.text) == (2, True)
