"""A web application on a port of this machine, until Ctrl-C."""

import errno
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from episodica.errors import InputError, not_installed
from episodica.web.guard import App

if TYPE_CHECKING:
    from uvicorn import Server

SECONDS_TO_END = 3  # for answers under way


def need_web() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise not_installed("pages need fastapi and uvicorn", "web") from None


def bind(host: str, port: int) -> socket.socket:
    """Port 0 is any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError, OverflowError):
        raise InputError(f"--host {host} with --port {port} is no address: try --host localhost") from None
    listener = socket.socket(family, kind, protocol)  # named, or asyncio leaves Nagle's algorithm on: 40 ms an answer
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(_remedy(error, host, port)) from None
    return listener


def _remedy(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} is in use, perhaps by another page of yours: take another with --port, or any with --port 0"
        )
    if error.errno == errno.EACCES:
        return f"port {port} is kept for the system: take one above 1023 with --port"
    return f"cannot serve on {host}, port {port}: {error.strerror}; try --host localhost"


def address(listener: socket.socket, host: str) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"


def server(app: App) -> "Server":
    import uvicorn

    from episodica.web.connection import Connection

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Connection,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=SECONDS_TO_END,
        )
    )


def serve(make: Callable[[Callable[[], bool]], App], listener: socket.socket) -> None:
    """Serve what `make` gives, which is told how to find out that the server ends, so that endless answers can."""
    app = make(lambda: running.should_exit)
    running = server(app)
    with listener, suppress(KeyboardInterrupt):  # the way in which Ctrl-C is told once everything has ended
        running.run(sockets=[listener])
