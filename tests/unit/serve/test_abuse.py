"""What is not answered, and how it is refused: a table of cases, each with its status."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.trained_recogniser import TrainedRecogniser
from episodica.data.decoding_process import DecodingProcess
from episodica.serve import uploads
from episodica.serve.app import guarded
from episodica.serve.limits import BodyLimit, Limits
from episodica.serve.uploads import Refusal, checked_name, shown_name
from episodica.web.guard import App
from unit.data.hostile_images import jpeg_with_scans, png_of_size, tiff_with_a_tile
from unit.serve.conftest import Client, png

GOOD = png(np.zeros((8, 8, 3), np.uint8))
TIGHT = replace(Limits(), body_bytes=20_000, image_bytes=5_000, images=3, arriving_seconds=0.2)
FORM = {"content-type": "multipart/form-data; boundary=x"}
START = b'--x\r\ncontent-disposition: form-data; name="images"; filename="a.png"\r\n\r\n'


def jpeg() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(48 * 48 * 3, dtype=np.uint8).reshape(48, 48, 3)).save(file, "JPEG")
    return file.getvalue()


FILES: dict[str, tuple[bytes, int]] = {
    "a text": (b"hello", 422),
    "HTML": (b"<html><script>alert(1)</script></html>", 422),
    "SVG with a script": (b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', 422),
    "nothing": (b"", 422),
    "zeros": (bytes(2_000), 422),
    "a truncated PNG": (png(np.random.default_rng(0).integers(0, 255, (30, 30, 3), dtype=np.uint8))[:900], 422),
    "a truncated JPEG": (jpeg()[:300], 422),
    "a header without an image": (GOOD[:33], 422),
    "a bomb of 6000 x 6000": (png_of_size(6_000), 422),
    "a bomb of 60000 x 60000": (png_of_size(60_000), 422),
    "a tile of 25600 x 25600 behind a header of 32 x 32": (tiff_with_a_tile(25_600), 422),
    "a JPEG of 200 scans": (jpeg_with_scans(64, 200), 422),
    "a ZIP": (b"PK\x03\x04" + bytes(100), 422),
    "an executable": (b"\x7fELF" + bytes(100), 422),
    "PostScript, which Pillow would run": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", 422),
    "an image of too many bytes": (GOOD + bytes(6_000), 413),
    "an image with HTML after it": (GOOD + b"<script>alert(1)</script>", 200),
}
NAMES = {
    "": 422,
    "   ": 422,
    "<script>alert(1)</script>": 422,
    "<img src=x onerror=alert(1)>": 422,
    "../../etc/passwd": 422,
    "..": 422,
    ".hidden": 422,
    "/etc/passwd": 422,
    "C:\\windows": 422,
    "line\nbreak": 422,
    "nul\0": 422,
    "\u202eright to left": 422,
    "n" * 81: 422,
    "%2e%2e%2f": 200,
    "Ünïcode & 'quotes' 猫": 200,
}


@pytest.fixture(scope="module")
def folder(pristine: ModelFolder) -> ModelFolder:
    return pristine


@pytest.fixture(scope="module")
def one_client(folder: ModelFolder, decoder: DecodingProcess) -> Client:
    return Client(guarded(folder, limits=TIGHT, decoder=decoder))


@pytest.fixture
def tight(one_client: Client, folder: ModelFolder) -> Iterator[Client]:
    """Whatever is asked, the model stays as it is, and the server answers."""
    before = folder.state().id
    yield one_client
    assert folder.state().id == before
    assert one_client.get("/health").status_code == 200


def refused(answer: httpx.Response, status: int, folder: ModelFolder) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "application/json"
    for secret in (str(folder.path), "Traceback", "site-packages", "/tmp", "<script", "0x"):
        assert secret not in answer.text
    return answer.json()


@pytest.mark.parametrize("case", FILES)
def test_files(tight: Client, folder: ModelFolder, case: str) -> None:
    data, status = FILES[case]
    for field, others in (("images", []), ("support", [("images", ("good.png", GOOD))])):
        files = [*others, (field, ("<b>x</b>.png", data, "image/png"))]
        answer = tight.post("/classify", files=files, data={"support_class": ["a"] * (field == "support")})
        found = refused(answer, status, folder)
        assert status == 200 or (found["field"], found["index"]) == (field, 0)
    if status != 200:
        refused(tight.post("/classes", files=[("images", ("x.png", data))], data={"name": "new"}), status, folder)


@pytest.mark.parametrize("name", NAMES)
def test_names(tight: Client, folder: ModelFolder, name: str) -> None:
    files = [("images", ("a.png", GOOD)), ("support", ("b.png", GOOD))]
    found = refused(tight.post("/classify", files=files, data={"support_class": name}), NAMES[name], folder)
    if NAMES[name] == 200:
        assert found["answers"][0]["class"] == name
        return
    assert (found["field"], found["index"]) == ("support_class", 0)
    refused(tight.post("/classes", files=files[:1], data={"name": name}), 422, folder)
    assert tight.delete("/classes", params={"name": name}).status_code == 404


REQUESTS: dict[str, tuple[dict[str, Any], int]] = {
    "JSON": ({"json": {"images": ["a"]}}, 422),
    "a form without images": ({"files": [("other", ("a.png", GOOD))]}, 422),
    "text where images belong": ({"data": {"images": "hello"}}, 422),
    "no boundary": ({"content": b"--x", "headers": {"content-type": "multipart/form-data"}}, 400),
    "a torn form": (
        {"content": b"--x\r\nnonsense", "headers": {"content-type": "multipart/form-data; boundary=x"}},
        422,
    ),
    "more names than images": ({"files": [("images", ("a.png", GOOD))], "data": {"support_class": ["a", "b"]}}, 422),
    "too many images": ({"files": [("images", ("a.png", GOOD))] * 4}, 413),
    "too many fields": ({"files": [("images", ("a.png", b""))] * 1_500}, 413),
    "too long, announced": ({"files": [("images", ("a.png", bytes(30_000)))]}, 413),
    "a length that is none": ({"content": b"", "headers": {**FORM, "content-length": "-1"}}, 413),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_requests(tight: Client, folder: ModelFolder, case: str) -> None:
    how, status = REQUESTS[case]
    refused(tight.post("/classify", **how), status, folder)


def test_too_long_in_chunks_without_a_length(tight: Client, folder: ModelFolder) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        yield START
        while True:
            taken += 1_000
            yield bytes(1_000)

    answer = tight.post("/classify", content=endless(), headers=FORM)
    refused(answer, 413, folder)
    assert taken <= TIGHT.body_bytes + 1_000


def test_a_body_that_dribbles(tight: Client, folder: ModelFolder) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield START
        while True:
            yield b"-"
            await asyncio.sleep(0.05)

    answer = tight.post("/classify", content=slow(), headers=FORM)
    refused(answer, 408, folder)


PATHS = {
    ("GET", "/images/../../../../etc/passwd"): 404,
    ("GET", "/images/%2e%2e%2f%2e%2e%2fmodel.json"): 404,
    ("GET", "/images/" + "0" * 32): 404,
    ("GET", "/images/model.json"): 422,
    ("GET", "/pages/../app.py"): 404,
    ("GET", "/pages/%2e%2e/app.py"): 404,
    ("GET", "/pages/..%2fapp.py"): 404,
    ("DELETE", "/classes?name=../../model"): 404,
    ("DELETE", "/classes?name=%00"): 404,
    ("DELETE", "/classes?name=%ff"): 404,
    ("DELETE", "/classes"): 422,
    ("PUT", "/classes"): 405,
}


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_paths(tight: Client, folder: ModelFolder, method: str, path: str) -> None:
    refused(tight.ask(method, path), PATHS[method, path], folder)


def test_other_sites_and_other_names(tight: Client) -> None:
    assert tight.ask("POST", "/classify", headers={"origin": "http://evil.example"}).status_code == 403
    assert tight.get("/classes", headers={"host": "evil.example"}).status_code == 421


def test_a_file_name_is_only_shown(tight: Client) -> None:
    for sent, shown in (("../../../etc/passwd", "passwd"), ("..\\..\\boot.ini", "boot.ini"), ("a" * 500, "a" * 80)):
        answer = tight.post("/classify", files=[("images", (sent, GOOD))])
        assert answer.json()["answers"][0]["image"] == shown


def test_work_that_takes_too_long(make_client: Callable[..., Client], folder: ModelFolder) -> None:
    answer = make_client(replace(Limits(), working_seconds=-1)).post("/classify", files=[("images", ("a.png", GOOD))])
    assert "longer than" in refused(answer, 413, folder)["detail"]


@pytest.fixture
def slow_embedding(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that work on a request goes by: decoding takes no time, and embedding 15 seconds an image."""
    clock, embed = [0.0], TrainedRecogniser.embed

    def slowly(recogniser: TrainedRecogniser, images: np.ndarray) -> np.ndarray:
        clock[0] += 15 * len(images)
        return embed(recogniser, images)

    monkeypatch.setattr(uploads, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(TrainedRecogniser, "embed", slowly)
    return clock


@pytest.mark.parametrize("path", ["/classify", "/classes"])
@pytest.mark.parametrize("count", [2, 3, 9])
def test_embedding_that_takes_too_long_is_stopped_between_two_images(
    make_client: Callable[..., Client], folder: ModelFolder, slow_embedding: list[float], path: str, count: int
) -> None:
    before = folder.state().id
    client = make_client()
    slow_embedding[0] = 0  # the model was tried with one image
    answer = client.post(path, files=[("images", ("a.png", GOOD))] * count, data={"name": "new"})
    assert "longer than 20 seconds" in refused(answer, 413, folder)["detail"]
    assert slow_embedding == [30]
    assert folder.state().id == before


def test_images_of_the_model_that_were_embedded_in_vain_are_not_embedded_again(
    make_client: Callable[..., Client], slow_embedding: list[float]
) -> None:
    client = make_client()  # each class has three images, and there is time for the question and one of them
    slow_embedding[0] = 0
    answers = [client.post("/classify", files=[("images", ("a.png", GOOD))]).status_code for _ in range(4)]
    assert answers == [413, 200, 200, 200]
    assert slow_embedding == [15 * (1 + 3)]


def test_nobody_waits_in_a_line_without_end(make_client: Callable[..., Client], folder: ModelFolder) -> None:
    answer = make_client(replace(Limits(), waiting=0)).get("/classes")
    assert "try again" in refused(answer, 503, folder)["detail"]
    crowded = make_client(replace(Limits(), arriving=0))
    assert "try again" in refused(crowded.post("/classify", files=[("images", ("a.png", GOOD))]), 503, folder)["detail"]
    assert crowded.get("/health").status_code == 200


@given(st.text())
def test_a_name_is_safe_or_refused(text: str) -> None:
    try:
        name = checked_name(text, Limits(), "name")
    except Refusal:
        return
    assert name
    assert not set(name) & set("<>/\\\0\n")
    assert checked_name(name, Limits(), "name") == name
    json.dumps(name, ensure_ascii=False).encode()


@given(st.text())
def test_any_file_name_can_be_shown(text: str) -> None:
    shown = shown_name(text)
    assert 0 < len(shown) <= 80
    assert "/" not in shown
    shown.encode()


@given(st.data())
def test_damaged_images_never_crash(one_client: Client, data: st.DataObject) -> None:
    whole = bytearray(data.draw(st.sampled_from([jpeg(), GOOD])))
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=8)):
        whole[place] ^= data.draw(st.integers(1, 255))
    answer = one_client.post("/classify", files=[("images", ("a.png", bytes(whole)))])
    assert answer.status_code in (200, 422)


def test_what_is_no_request_passes() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(BodyLimit(app)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]


def test_an_endless_body_over_a_real_connection(folder: ModelFolder, serving: Callable[[App], str]) -> None:
    """The answer comes while the client still sends, and the connection ends."""
    port = int(serving(guarded(folder, limits=TIGHT)).rsplit(":", 1)[1].strip("/"))
    head = f"POST /classify HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-type: {FORM['content-type']}\r\n"
    with socket.create_connection(("localhost", port), timeout=10) as connection:
        connection.sendall(f"{head}transfer-encoding: chunked\r\n\r\n{len(START):x}\r\n".encode() + START + b"\r\n")
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(40):
                connection.sendall(b"3e8\r\n" + bytes(1_000) + b"\r\n")
        connection.settimeout(10)
        answer = b""
        with suppress(ConnectionResetError):
            while data := connection.recv(4096):
                answer += data
    assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
