"""The side of a Ray cluster on which runs are computed: one process a run, which ends with it."""

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import ray
import torch
from ray.exceptions import RayError

from episodica.config import RunConfig, resolve
from episodica.engine.device import keep_freed_memory
from episodica.errors import Interrupted
from episodica.files.atomic import remove_leftovers
from episodica.files.door import Folder
from episodica.sweep.executor import Outcome, Verdict
from episodica.sweep.folder_sync import Piece, Sender, own_folder, progress, receive
from episodica.sweep.in_turn import InTurn

SECONDS_BETWEEN_LOOKS = 0.5  # at whether the user wants to stop
MOST_IN_FLIGHT = 4  # posts: a few pieces of files fit into Ray's memory


class Order(NamedTuple):
    """All that a process anywhere in the cluster must know of a run."""

    tree: dict[str, Any]
    out: Path  # where the driver wants it
    sign: str  # a file in `out`: who sees it shares the driver's disk
    disk: str  # auto, shared, own
    threads: int
    gpus: float
    folder: Path  # in which the driver was started: paths may be relative to it
    environment: dict[str, str]
    pieces: Any  # what the driver has of the run, for a worker with a disk of its own


class Line:
    """From a worker to the driver, and back whether to stop. Posts arrive in order; training does not wait for them."""

    def __init__(self, exchange: Any, run: str) -> None:
        self._exchange, self._run = exchange, run
        self._posts: list[Any] = []  # that are not answered yet
        self._asked, self._looked = False, 0.0

    def say(self, *items: tuple[Any, ...]) -> None:
        """Plain tuples: the exchange does not load our code."""
        self._posts.append(self._exchange.post.remote(self._run, items))
        self._looked = time.monotonic()
        self._hear(all_but=MOST_IN_FLIGHT)

    def on_event(self, event: Mapping[str, Any]) -> None:
        self.say(("event", dict(event)))

    def stop(self) -> bool:
        if not self._asked and time.monotonic() - self._looked > SECONDS_BETWEEN_LOOKS:
            self.say()
        self._hear(all_but=len(self._posts))
        return self._asked

    def arrived(self) -> bool:
        """Wait until everything has been said; whether to stop."""
        self._hear(all_but=0)
        return self._asked

    def _hear(self, all_but: int) -> None:
        """Take the answers that are there, and wait for the others but for so many."""
        if not self._posts:
            return
        least = len(self._posts) - all_but
        wait = {"num_returns": least} if least > 0 else {"num_returns": len(self._posts), "timeout": 0}
        answers, self._posts = ray.wait(self._posts, **wait, fetch_local=True)
        try:
            self._asked |= any(ray.get(answers))
        except RayError:  # the caller has stopped listening
            raise Interrupted from None


class Worker:
    """Its process is started for one run."""

    def run(self, order: Order, exchange: Any) -> Verdict:
        _settle(order)
        config = resolve(order.tree)
        line = Line(exchange, config.run_id)
        node = ray.get_runtime_context().get_node_id()
        line.on_event({"event": "started", "host": socket.gethostname(), "process": os.getpid(), "node": node})
        if line.arrived():
            return None
        if order.disk == "shared" or (order.disk == "auto" and (order.out / order.sign).exists()):
            outcome = InTurn().run([config], order.out, lambda config: line.on_event, line.stop)
        else:
            outcome = _run_on_own_disk(order, config, line)
        line.arrived()
        return outcome.verdict()


def _settle(order: Order) -> None:
    """Make this process one that the driver could have started itself."""
    os.environ.update(order.environment)
    if not order.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # what was not asked for is not ours
    if order.folder.is_dir():
        os.chdir(order.folder)
    keep_freed_memory()
    torch.set_num_threads(order.threads)


def _run_on_own_disk(order: Order, config: RunConfig, line: Line) -> Outcome:
    """Begin with the further of what is here and what the driver has; send back what is new with every session."""
    own = own_folder(order.out)
    own.make_private()
    out = own.path
    folder = out / config.run_id
    sender = Sender(folder)
    given = [Piece(*piece) for piece in order.pieces]
    if _progress_of(given) >= progress(folder):
        Folder(out).remove_tree(config.run_id)
        for piece in given:
            receive(piece, folder)
        sender.is_up_to_date()

    def send() -> None:
        for piece in sender.changed():
            line.say(("piece", *piece))

    def on_event(event: Mapping[str, Any]) -> None:
        line.on_event(event)
        if event["event"] == "session" and event["session"] > 1:  # the one before has ended, and is saved
            send()

    outcome = InTurn().run([config], out, lambda config: on_event, line.stop)
    remove_leftovers(folder)
    send()
    line.say(("names", list(sender.files())))
    line.arrived()
    Folder(out).remove_tree(config.run_id)
    with suppress(OSError):  # other runs are still there
        out.rmdir()
    return outcome


def _progress_of(pieces: list[Piece]) -> str:
    paths = [Path(piece.name) for piece in pieces]
    return max((path.stem for path in paths if path.parts[0] == "checkpoints" and path.suffix == ".json"), default="")
