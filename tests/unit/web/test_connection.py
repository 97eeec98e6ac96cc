"""Raw requests on the loopback interface, to an application that only says hello."""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from episodica.web.connection import Connection
from episodica.web.guard import App, Guard, Receive, Scope, Send


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def port(serving: Callable[[App], str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(Connection, "seconds_for_headers", 0.3)
    return int(serving(Guard(hello)).rsplit(":", 1)[1].strip("/"))


@pytest.fixture
def connection(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("localhost", port), timeout=20) as connection:
        yield connection


def all_of(connection: socket.socket) -> bytes:
    """What comes until the server ends the connection, which it does: otherwise this fails after 20 seconds."""
    parts = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(4096):
            parts += part
    return parts


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nhost: localhost\r\nx: "])
def test_headers_that_never_come(connection: socket.socket, begun: bytes) -> None:
    connection.sendall(begun)
    assert all_of(connection) == b""


def test_headers_that_dribble(connection: socket.socket) -> None:
    """They are answered or cut off: a byte that is under way when the server closes makes it a reset."""
    connection.settimeout(0.05)
    for _ in range(400):
        try:
            connection.sendall(b"G")
            connection.recv(1)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            pass
        break
    else:
        pytest.fail("the server still listens")


def test_the_rest_of_a_request_that_is_answered(connection: socket.socket) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nx")
    assert all_of(connection).endswith(b"hello")


def test_a_second_request_whose_headers_dribble(connection: socket.socket) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\nGET / HTTP/1.1\r\n")
    assert all_of(connection).count(b"hello") == 1


def test_several_requests_of_one_connection(connection: socket.socket) -> None:
    connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * 3)
    assert all_of(connection).count(b"hello") == 3


def test_a_length_and_chunks(connection: socket.socket) -> None:
    """One of two servers in a row may believe the one, and the other the other."""
    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n"
    connection.sendall(head + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n")
    answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer


def test_an_answer_that_nobody_reads(serving: Callable[[App], str], monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] == "http.request":
            for _ in range(100):
                await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
        ended.set()

    monkeypatch.setattr(Connection, "seconds_without_reading", 0.1)
    port = int(serving(Guard(endless)).rsplit(":", 1)[1].strip("/"))
    with socket.create_connection(("localhost", port), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert ended.wait(20), "the server still waits for its client"


HEADERS = """host: localhost|host: evil|content-length: 3|content-length: -1|transfer-encoding: chunked|
connection: keep-alive|expect: 100-continue|upgrade: websocket|\0: \0| folded"""
heads = st.sampled_from([*HEADERS.encode().replace(b"\n", b"").split(b"|"), b"endless"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([b"GET / HTTP/1.1", b"POST / HTTP/1.0", b"PRI * HTTP/2.0", b"GET http://evil/ HTTP/1.1", b"\xff"]),
    st.lists(heads, max_size=4),
    st.binary(max_size=20),
)
def test_any_request_is_answered_or_ended(port: int, line: bytes, headers: list[bytes], body: bytes) -> None:
    with socket.create_connection(("localhost", port), timeout=20) as connection:
        with suppress(ConnectionResetError, BrokenPipeError):
            sent = (b"x" * 70_000 if header == b"endless" else header for header in headers)
            connection.sendall(b"\r\n".join([line, *sent, b"", body]))
            connection.shutdown(socket.SHUT_WR)
        answer = all_of(connection)
    assert not answer or answer.startswith(b"HTTP/1.1 ")
    assert b" 500 " not in answer.partition(b"\r\n")[0]
