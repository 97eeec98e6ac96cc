"""Requests to an application without a network."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from episodica.web.guard import App


class Asker:
    """Asks as a browser would that has opened `base_url`: it keeps cookies and does not follow redirects."""

    def __init__(self, app: App, base_url: str = "http://localhost:8000") -> None:
        self._app, self._base_url, self._cookies = app, base_url, httpx.Cookies()

    def get(self, path: str, headers: Mapping[str, str] | Sequence[tuple[bytes, bytes]] = ()) -> httpx.Response:
        return self.ask("GET", path, headers=headers)

    def ask(self, method: str, path: str, **how: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url=self._base_url, cookies=self._cookies) as client:
                answer = await client.request(method, path, **how)
                self._cookies = client.cookies
                return answer

        return asyncio.run(ask())
