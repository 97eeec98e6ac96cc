"""HTTP: bytes on a connection to `serve`, from requests that are almost right to none at all."""

import json
import logging
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import NoReturn

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from episodica.classifier.model_folder import ModelFolder
from episodica.data.decoding_process import DecodingProcess
from episodica.errors import Interrupted
from episodica.serve.app import guarded
from episodica.serve.limits import Limits
from episodica.web.connection import Connection
from episodica.web.listening import bind, server
from torture.inputs import archives, images
from torture.inputs.damage import damaged, numbers, scalars, trees, words
from torture.inputs.kind import Kind, Read

TOKEN = "a-token-of-the-torture-bench"
PATIENCE = 0.15  # seconds that a connection has for its headers, and a request for its body
LONGEST = 15.0  # seconds until an answer must have ended
STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")
DIGEST = "0" * 32
ROUTES = [  # as they are meant: what the body is, where there is one
    *((b"GET", path, None) for path in (
        "/model", "/metrics", "/classes", "/images?class=ant", "/history", "/quality", "/map", "/health", "/job", "/",
        "/export/model.zip", f"/images/{DIGEST}", f"/model?token={TOKEN}", "/docs", "/openapi.json",
    )),
    *((b"POST", path, "form") for path in ("/classify", "/classify", "/classes", "/images", "/images")),
    *((b"POST", path, "order") for path in (
        "/classes/rename", "/images/remove", "/images/move", "/history/undo", "/groups", "/job",
    )),
    (b"POST", "/import", "archive"),
    (b"DELETE", "/classes?name=ant", None),
    (b"DELETE", "/job", None),
]  # fmt: skip
PATHS = [
    "/images/../model",
    "//",
    "/%00",
    "/%2e%2e/",
    "*",
    "http://x/model",
    "/images/x",
    *(path for _, path, _ in ROUTES),
]


class NotAnswered(Exception):
    """What a client is told instead of an answer; or nothing, where it is hung up on."""


def _line(text: str) -> bytes:
    return text.encode("utf-8", "replace").replace(b"\r", b"").replace(b"\n", b"")


lines = words.map(_line)
queries = st.sampled_from(
    ["", "", "", "?class=ant", "?name=ant", "?side=20", f"?token={TOKEN}", "?token=x&a=%ff", "?side=9e9"]
)
targets = st.tuples(st.sampled_from(PATHS) | words, queries).map(lambda parts: _line("".join(parts)))
methods = (
    st.sampled_from([b"GET", b"POST", b"POST", b"DELETE", b"HEAD", b"OPTIONS", b"PUT", b"TRACE", b"CONNECT"]) | lines
)
FIELDS = [b"support_class", b"batch", b"asked", b"if_known", b"what", b"replace", b"class", b"images"]
CLASSES = st.sampled_from([b"ant", b"new", b"b\xc3\xa9", b"../x", b""])
NAMES = [
    b"Host", b"Origin", b"Cookie", b"Authorization", b"X-Name", b"Accept", b"If-None-Match", b"Range",
    b"Sec-Fetch-Site", b"Expect", b"Upgrade", b"Connection", b"Content-Length", b"Transfer-Encoding", b"Content-Type",
    b"Content-Encoding",
]  # fmt: skip
VALUES = [
    b"application/jsonl", b"100-continue", b"chunked", b"websocket", b"cross-site", b"%ff%00%F0", b"bytes=9-1", b"gzip",
    b"episodica-0=x; a=\xff", b"-1", b"application/json",
]  # fmt: skip
usual = st.fixed_dictionaries({b"Host": st.just(b"localhost"), b"Authorization": st.just(f"Bearer {TOKEN}".encode())})
odd = st.lists(
    st.tuples(
        st.sampled_from(NAMES) | lines,
        st.sampled_from(VALUES) | lines,
    ),
    max_size=2,
)


@st.composite
def forms(draw: DrawFn) -> tuple[bytes, bytes]:
    """A content type, and a body with files and fields: mostly those that a route asks for, some of them hostile."""
    boundary = draw(st.sampled_from([b"x", b"x", b"x", b"x", b"", b"-" * 80]))
    fields = [(b"class", draw(CLASSES)), (b"name", draw(CLASSES))] if draw(st.booleans()) else []
    fields += draw(st.lists(st.tuples(st.sampled_from(FIELDS) | lines, lines | CLASSES), max_size=2))
    files = draw(st.lists(st.tuples(st.sampled_from([b"images", b"images", b"support"]), lines, pictures), max_size=3))
    heads = [(b'name="%s"' % name, value) for name, value in fields]
    heads += [(b'name="%s"; filename="%s"' % (name, file), content) for name, file, content in files]
    body = b"".join(
        b"--%s\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n" % (boundary, head, content)
        for head, content in heads
    )
    return b"multipart/form-data; boundary=" + boundary, body + b"--%s--\r\n" % boundary


pictures = st.one_of(images.whole("PNG"), images.hostile("PNG"), images.hostile("JPEG"), st.binary(max_size=20))
orders = st.fixed_dictionaries(
    {},
    optional={
        "digests": st.lists(st.just(DIGEST) | words, max_size=3),
        "asked": st.lists(st.just(DIGEST) | words, max_size=3),
        "class": st.just("ant") | scalars, "name": st.just("ant") | scalars, "to": st.just("cow") | scalars,
        "merge": st.booleans() | scalars, "number": numbers | scalars, "what": st.just("adapt") | scalars,
    },
)  # fmt: skip
BODIES: dict[str | None, SearchStrategy[tuple[bytes, bytes]]] = {  # with their content type
    "form": forms(),
    "order": st.tuples(
        st.just(b"application/json"),
        (orders | trees).map(lambda tree: json.dumps(tree).encode())
        | st.sampled_from([b"[" * 100_000, b'{"a":' * 5_000, b"9" * 10_000, b"\xff", b'{"number": 1e999}']),
    ),
    "archive": st.tuples(st.just(b"application/zip"), archives.zips()),
    None: st.just((b"", b"")),
}


@st.composite
def asked(draw: DrawFn) -> tuple[bytes, bytes, bytes, bytes]:
    """A method, a target, a content type and a body: mostly what goes together."""
    if draw(st.integers(0, 3)):
        method, path, what = draw(st.sampled_from(ROUTES))
        return method, path.encode(), *draw(BODIES[what])
    return draw(methods), draw(targets), *draw(st.one_of([*BODIES.values()]))


@st.composite
def messages(draw: DrawFn) -> bytes:
    method, target, kind, body = draw(asked())
    fields = [*draw(usual).items(), *draw(st.one_of(st.just([]), st.just([]), odd))]
    if kind:
        fields.append((b"Content-Type", kind))
    match draw(st.sampled_from(["length", "length", "length", "chunks", "lie", "close"])):
        case "length":
            fields += [(b"Content-Length", str(len(body)).encode()), (b"Connection", b"close")]
        case "chunks":
            fields += [(b"Transfer-Encoding", b"chunked"), (b"Connection", b"close")]
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        case "lie":
            fields.append((b"Content-Length", str(draw(numbers)).encode()))
        case _:
            fields.append((b"Connection", b"close"))
    version = draw(st.sampled_from([b"HTTP/1.1"] * 6 + [b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9"]))
    head = b"%s %s %s\r\n" % (method, target.replace(b" ", b"%20"), version)
    return head + b"".join(b"%s: %s\r\n" % field for field in fields) + b"\r\n" + body


def hostile() -> SearchStrategy[bytes]:
    return st.one_of(messages(), messages(), damaged(messages(), 3), st.binary(max_size=200))


@contextmanager
def served(place: Path, model: Path) -> Iterator[Read]:
    """A copy of the model behind a port of this machine, and what reads the answer to some bytes."""
    Connection.seconds_for_headers = PATIENCE
    log = _Failures()
    copy = shutil.copytree(model, place / "model")
    limits = replace(
        Limits(), body_bytes=1 << 20, arriving_seconds=PATIENCE, model_seconds=PATIENCE, model_bytes=1 << 20
    )
    with DecodingProcess() as decoder, bind("127.0.0.1", 0) as listener:
        running = server(guarded(ModelFolder(copy), "127.0.0.1", TOKEN, limits, decoder, train=_stopped_at_once))
        for logger in ("", "uvicorn.error"):  # which the server has set up by now
            logging.getLogger(logger).addHandler(log)
        thread = Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield partial(_ask, listener.getsockname()[1], log)
        running.should_exit = True
        thread.join(LONGEST)
        assert not thread.is_alive(), "the server does not end"


def _stopped_at_once(*_: object) -> NoReturn:
    raise Interrupted


def _ask(port: int, log: "_Failures", data: bytes) -> None:
    answer = _exchanged(port, data)
    healthy = _exchanged(port, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert healthy.startswith(b"HTTP/1.1 200 "), "the server is not well afterwards"
    assert not log.said, log.said.pop()
    statuses = [int(status) for status in STATUS.findall(answer)]
    assert 500 not in statuses, f"an error of ours: {answer[-300:]!r}"
    if not statuses or statuses[-1] >= 400:
        raise NotAnswered(str(statuses))


def _exchanged(port: int, data: bytes) -> bytes:
    """All that comes back until the server hangs up."""
    parts = []
    with socket.create_connection(("127.0.0.1", port), timeout=LONGEST) as line:
        try:
            line.sendall(data)
            while part := line.recv(1 << 16):
                parts.append(part)
        except ConnectionError:  # it hung up before it had heard everything
            pass
    return b"".join(parts)


class _Failures(logging.Handler):
    """What a server logs when an exception was nobody's."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.said.append(self.format(record)[-1_500:])


def kinds(model: Path) -> list[Kind]:
    return [Kind("HTTP", hostile(), lambda place: served(place, model), (NotAnswered,), seconds=30)]
