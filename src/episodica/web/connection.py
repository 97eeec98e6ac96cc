"""Connections that do not wait for ever: a client has some seconds to say what it wants. Needs the extra `web`."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_FOR_HEADERS = 10.0
SECONDS_WITHOUT_READING = 60.0  # that a client may leave an answer unread
MOST_CONNECTIONS = 256


class Connection(H11Protocol):
    """Uvicorn's, which by itself waits without end for the first request and for the rest of one that has begun."""

    seconds_for_headers = SECONDS_FOR_HEADERS
    seconds_without_reading = SECONDS_WITHOUT_READING
    _patience: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            return transport.abort()
        return self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._is_read()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()  # all headers are here; of the body, the application takes care

    def on_response_complete(self) -> None:
        if not self.transport.is_closing():
            self._wait_for_headers()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client takes less than there is: what waits for it must not wait for ever."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.seconds_without_reading, self.transport.abort)

    def resume_writing(self) -> None:
        self._is_read()
        super().resume_writing()

    def _is_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _wait_for_headers(self) -> None:
        self._stop_waiting()
        self._patience = self.loop.call_later(self.seconds_for_headers, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
