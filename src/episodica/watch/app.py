"""The live page: all runs below a folder, as they train. `episodica watch` serves it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from episodica.watch.watched_folder import WatchedFolder
from episodica.web.guard import App, Guard
from episodica.web.pages import MEDIA_TYPES, SHARED

PAGES = Path(__file__).parent / "pages"
FILES = {"/": PAGES / "live.html"} | {
    f"/{path.name}": path
    for path in (*(PAGES / name for name in ("live.css", "live.js", "charts.js", "roster.js", "panel.js")), *SHARED)
}
BETWEEN_LOOKS = 1.0
SIGN_OF_LIFE = 15.0


class Poller:
    """Looks at the runs at most once a second, however many pages are open, and not at all when none is."""

    def __init__(self, folder: WatchedFolder, between: float = BETWEEN_LOOKS) -> None:
        self.folder, self.between = folder, between
        self._looked = float("-inf")
        self._lock = asyncio.Lock()

    async def look(self) -> None:
        async with self._lock:
            if self.folder.behind or time.monotonic() - self._looked >= self.between:
                await asyncio.to_thread(self.folder.refresh)
                self._looked = time.monotonic()

    async def look_at_all(self) -> None:
        await self.look()
        while self.folder.behind:
            await self.look()


async def stream(poller: Poller, stopping: Callable[[], bool]) -> AsyncIterator[str]:
    """Server-sent events: everything there is, then what changes; a sign of life where nothing does."""
    version, spoke = 0, time.monotonic()
    while not stopping():
        await poller.look()
        change = poller.folder.since(version)
        if change.runs or change.gone or not version:
            update = {"folder": str(poller.folder.root), "whole": not version, "runs": change.runs, "gone": change.gone}
            yield f"event: runs\ndata: {to_json(update)}\n\n"
            spoke = time.monotonic()
        elif time.monotonic() - spoke > SIGN_OF_LIFE:
            yield ": still here\n\n"
            spoke = time.monotonic()
        version = change.version
        await asyncio.sleep(0 if poller.folder.behind else poller.between)


def to_json(value: Any) -> str:
    """ASCII: names of folders need not be valid text. Numbers that JSON lacks would be an error of ours."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def live_app(
    root: Path,
    host: str = "localhost",
    token: str | None = None,
    stopping: Callable[[], bool] = lambda: False,
    between: float = BETWEEN_LOOKS,
) -> App:
    from fastapi import FastAPI, HTTPException, Response
    from fastapi.responses import StreamingResponse

    app = FastAPI(title="episodica watch", docs_url=None, redoc_url=None, openapi_url=None)
    poller = Poller(WatchedFolder(root), between)

    def answer(value: Any) -> Response:
        return Response(to_json(value), media_type="application/json")

    def page(file: Path) -> Callable[[], Response]:
        return lambda: Response(file.read_bytes(), media_type=MEDIA_TYPES[file.suffix])

    for path, file in FILES.items():
        app.get(path)(page(file))

    @app.get("/health")
    async def health() -> Response:
        return answer({"status": "ok"})

    @app.get("/api/runs")
    async def runs() -> Response:
        await poller.look_at_all()
        return answer({"folder": str(root), "runs": poller.folder.since(0).runs})

    @app.get("/api/runs/{key}")
    async def run(key: str) -> Response:
        await poller.look()
        if poller.folder.detail(key) is None:
            await poller.look_at_all()
        found = poller.folder.detail(key)
        if found is None:
            raise HTTPException(404, "There is no such run (any more); /api/runs lists those there are.")
        return answer(found)

    @app.get("/api/events")
    async def events() -> StreamingResponse:
        return StreamingResponse(stream(poller, stopping), media_type="text/event-stream")

    return Guard(app, host, token)
