"""As much of Ray as `spread` uses, in this process: a task runs when its answer is asked for."""

from collections.abc import Callable
from typing import Any


class FakeRay:
    def __init__(self, cpus: int = 3, store: int = 1000) -> None:
        self.cpus, self.store = cpus, store
        self.under_way = self.most_under_way = 0

    def remote(self, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        def made(function: Callable[..., Any]) -> Any:
            return type("Remote", (), {"remote": staticmethod(lambda *arguments: self._begun(function, arguments))})

        return made

    def _begun(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        return function, arguments

    def get(self, answer: Any) -> Any:
        self.under_way -= 1
        function, arguments = answer
        return self.run(function, arguments)

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return function(*arguments)

    def get_runtime_context(self) -> Any:
        return type("Context", (), {"get_node_id": staticmethod(lambda: "here")})

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": "here", "Resources": {"object_store_memory": self.store}}]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.cpus)}
