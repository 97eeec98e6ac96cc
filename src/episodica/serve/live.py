"""The live page: all runs below a folder, as they train. `episodica watch` serves it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from episodica.serve.fleet import Change, Fleet
from episodica.serve.guard import App, Guard

PAGES = Path(__file__).parent / "pages"
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = {"/": "live.html"} | {
    f"/{name}": name for name in ("live.css", "live.js", "dom.js", "charts.js", "roster.js", "panel.js", "icon.svg")
}
BETWEEN_LOOKS = 1.0
SIGN_OF_LIFE = 15.0


class Lookout:
    """Looks at the runs at most once a second, however many pages are open, and not at all when none is."""

    def __init__(self, fleet: Fleet, between: float = BETWEEN_LOOKS) -> None:
        self.fleet, self.between = fleet, between
        self._looked = float("-inf")
        self._lock = asyncio.Lock()

    async def look(self) -> None:
        async with self._lock:
            if time.monotonic() - self._looked >= self.between:
                await asyncio.to_thread(self.fleet.refresh)
                self._looked = time.monotonic()


async def stream(lookout: Lookout, stopping: Callable[[], bool]) -> AsyncIterator[str]:
    """Server-sent events: everything there is, then what changes; a sign of life where nothing does."""
    version, spoke = 0, time.monotonic()
    while not stopping():
        await lookout.look()
        change = lookout.fleet.since(version)
        if change.runs or change.gone or not version:
            yield f"event: runs\ndata: {to_json(_told(change, whole=not version))}\n\n"
            spoke = time.monotonic()
        elif time.monotonic() - spoke > SIGN_OF_LIFE:
            yield ": still here\n\n"
            spoke = time.monotonic()
        version = change.version
        await asyncio.sleep(lookout.between)


def _told(change: Change, *, whole: bool) -> dict[str, Any]:
    return {"version": change.version, "whole": whole, "runs": change.runs, "gone": change.gone}


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
    lookout = Lookout(Fleet(root), between)

    def answer(value: Any) -> Response:
        return Response(to_json(value), media_type="application/json")

    def page(name: str) -> Callable[[], Response]:
        return lambda: Response((PAGES / name).read_bytes(), media_type=KINDS[name.rpartition(".")[2]])

    for path, name in FILES.items():
        app.get(path)(page(name))

    @app.get("/health")
    async def health() -> Response:
        return answer({"status": "ok"})

    @app.get("/api/runs")
    async def runs() -> Response:
        await lookout.look()
        change = lookout.fleet.since(0)
        return answer({"folder": str(root), "version": change.version, "runs": change.runs})

    @app.get("/api/runs/{key}")
    async def run(key: str) -> Response:
        await lookout.look()
        found = lookout.fleet.detail(key)
        if found is None:
            raise HTTPException(404, "There is no such run (any more); /api/runs lists those there are.")
        return answer(found)

    @app.get("/api/events")
    async def events() -> StreamingResponse:
        return StreamingResponse(stream(lookout, stopping), media_type="text/event-stream")

    return Guard(app, host, token)
