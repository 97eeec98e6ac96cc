"""Work that is spread over a cluster in parts: a bounded number of them ahead, and what comes of them in order.

A part is one of Ray's plain tasks. Ray finds a machine for it, and another one where a machine is lost. What is under
way takes room in the object store of this machine, of which half is used; nothing here grows with the number of parts.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from episodica.cluster.connection import Disk
from episodica.errors import InputError

LOSSES = 3  # of processes at one part, before it is given up
AHEAD = 2  # parts for each process: one that it works on, and one that waits there
SHARE = 0.5  # of the object store of this machine


@dataclass(frozen=True)
class OnCluster:
    """`disk`: workers open the files that the driver names (shared), or get their bytes (own); with auto they open
    them where they see the same files."""

    address: str | None = None  # "auto", or HOST:PORT; none starts a cluster on this machine
    cpus: int = 1  # of each process: its threads, too
    disk: Disk = "auto"

    def __post_init__(self) -> None:
        if self.cpus < 1:
            raise InputError(f"a process needs 1 CPU or more, not {self.cpus}")
        if self.disk not in get_args(Disk):
            raise InputError(f"disk = {self.disk}: choose one of {', '.join(get_args(Disk))}")


@dataclass(frozen=True)
class Part:
    what: Any  # for whoever made it
    arguments: tuple[Any, ...]  # of the function
    bytes: int  # that they take
    about: str  # in messages


@dataclass
class Spread:
    """A function of a module that workers can import, at work on many parts."""

    ray: Any
    function: Callable[..., Any]
    cpus: int
    _remote: Any = field(init=False)
    _room: float = field(init=False)

    def __post_init__(self) -> None:
        self._remote = self.ray.remote(num_cpus=self.cpus, max_retries=LOSSES)(self.function)
        here = self.ray.get_runtime_context().get_node_id()
        (resources,) = (node["Resources"] for node in self.ray.nodes() if node["NodeID"] == here)
        self._room = SHARE * resources["object_store_memory"]

    def results(self, parts: Iterable[Part]) -> Iterator[tuple[Part, Any]]:
        """Each part with what the function makes of it; parts are taken when there is room for them."""
        under_way: deque[tuple[Part, Any]] = deque()
        bytes_ = 0
        for part in parts:
            while under_way and (len(under_way) >= self._most() or bytes_ + part.bytes > self._room):
                bytes_ -= under_way[0][0].bytes
                yield self._finished(*under_way.popleft())
            under_way.append((part, self._remote.remote(*part.arguments)))
            bytes_ += part.bytes
        while under_way:
            yield self._finished(*under_way.popleft())

    def result(self, part: Part) -> Any:
        """Of one part, alone."""
        return self._finished(part, self._remote.remote(*part.arguments))[1]

    def _most(self) -> int:
        """Machines may come and go."""
        return AHEAD * max(1, int(self.ray.cluster_resources().get("CPU", 1)) // self.cpus)

    def _finished(self, part: Part, answer: Any) -> tuple[Part, Any]:
        from ray.exceptions import RayError, RayTaskError

        try:
            return part, self.ray.get(answer)
        except RayTaskError as error:
            if isinstance(error.cause, InputError):
                raise error.cause from None
            raise RuntimeError(f"a worker failed at {part.about}: {error.cause}") from None
        except RayError as error:
            raise InputError(
                f"{LOSSES + 1} workers were lost at {part.about} ({type(error).__name__}): is there enough memory on "
                "the machines? Run the same command again to go on"
            ) from None
