"""What a server has been asked and how it answered, in the text format of Prometheus (version 0.0.4)."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

from episodica.web.guard import App, Message, Receive, Scope, Send

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, dict[str, str], float]  # suffix of the name, labels, value


@dataclass
class Metrics:
    """Kept by the thread that serves: nothing here needs a lock."""

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)  # by method, route and status
    seconds: dict[str, list[float]] = field(
        default_factory=lambda: defaultdict(list[float])
    )  # by route: sum and counts
    images: Counter[bool] = field(default_factory=Counter)  # answered, by whether they were unknown

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        found = self.seconds[route] or [0.0] * (len(BOUNDS) + 2)
        found[0] += seconds
        found[1] += 1
        for i, bound in enumerate(BOUNDS, 2):
            found[i] += seconds <= bound
        self.seconds[route] = found

    def text(self, drift: float | None, drift_images: int, moved: bool) -> str:
        known, unknown = self.images[False], self.images[True]
        families = [
            _family("requests_total", "counter", "Requests answered.", self._requests()),
            _family("request_seconds", "histogram", "How long they took.", self._seconds()),
            _family(
                "images_total",
                "counter",
                "Images classified by the model's own classes.",
                [("", {"unknown": "false"}, known), ("", {"unknown": "true"}, unknown)],
            ),
            _family(
                "unknown_share",
                "gauge",
                "Share of them that fit no class.",
                [("", {}, unknown / (known + unknown))] if known + unknown else [],
            ),
            _family(
                "drift",
                "gauge",
                "Distance of the strangeness of last week's images to that of held-out ones.",
                [] if drift is None else [("", {}, drift)],
            ),
            _family("drift_images", "gauge", "Images of the last week that it is about.", [("", {}, drift_images)]),
            _family("drift_moved", "gauge", "1 where that is more than chance explains.", [("", {}, float(moved))]),
        ]
        return "".join(families)

    def _requests(self) -> Iterator[Sample]:
        for (method, route, status), count in sorted(self.requests.items()):
            yield "", {"method": method, "route": route, "status": str(status)}, count

    def _seconds(self) -> Iterator[Sample]:
        for route, (total, count, *below) in sorted(self.seconds.items()):
            for bound, reached in zip((*map(str, BOUNDS), "+Inf"), (*below, count), strict=True):
                yield "_bucket", {"route": route, "le": bound}, reached
            yield "_sum", {"route": route}, total
            yield "_count", {"route": route}, count


def _family(name: str, kind: str, help: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP episodica_{name} {help}", f"# TYPE episodica_{name} {kind}"]
    for suffix, labels, value in samples:
        marks = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"episodica_{name}{suffix}{{{marks}}} {value:.10g}" if marks else f"episodica_{name} {value:.10g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@dataclass
class Measured:
    """An ASGI application around another one, whose answers are counted by its routes: what a client has invented
    counts as `other`, so that nobody can make more of them."""

    app: App
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status = time.monotonic(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if route != "other" and status != HTTPStatus.METHOD_NOT_ALLOWED else "any"
            self.metrics.request(method, route, status, time.monotonic() - began)
