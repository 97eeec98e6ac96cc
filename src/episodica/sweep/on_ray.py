"""Runs on a Ray cluster.

Each run is an actor, a process with its own CPUs and GPUs. Events come back through an exchange, which is another one;
what a run writes comes back where the worker does not see `out`. A worker that is lost is replaced, and the new one
continues from the last checkpoint.
"""

import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from uuid import uuid4

from episodica.cluster.connection import Disk, connected
from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.files.atomic import remove_leftovers
from episodica.records.results import Results
from episodica.records.run import RunFolder, write_failure
from episodica.sweep.executor import OnEventFor, Outcome, Stop
from episodica.sweep.folder_sync import Piece, Sender, keep_only, receive

if TYPE_CHECKING:
    from episodica.engine.trainer import OnEvent

SECONDS_BETWEEN_LOOKS = 0.2


@dataclass(frozen=True)
class OnRay:
    """`disk` says where workers write: into `out`, to a disk of their own from which it is copied, or, with auto, into
    `out` where they see a file that the driver has put there, and else to their own."""

    address: str | None = None  # "auto", or HOST:PORT; none starts a cluster on this machine
    cpus: int = 1  # of each run: its threads, too
    gpus: float = 0
    disk: Disk = "auto"
    losses: int = 3  # of workers of one run, before it is given up

    def __post_init__(self) -> None:
        if self.cpus < 1 or self.gpus < 0:
            raise InputError(f"a run needs 1 CPU or more and 0 GPUs or more, not {self.cpus} and {self.gpus}")
        if self.disk not in get_args(Disk):
            raise InputError(f"disk = {self.disk}: workers write to {', '.join(get_args(Disk))}")

    def run(self, configs: Sequence[RunConfig], out: Path, on_event_for: OnEventFor, stop: Stop) -> Outcome:
        threads = max(config.threads or 1 for config in configs)
        if threads > self.cpus:
            raise InputError(f"{threads} threads on {self.cpus} CPUs of a run: raise cpus, or lower threads")
        outcome, waiting = Outcome(), []
        for config in configs:
            try:
                done = _finished(config, out)
            except InputError as error:
                outcome.note(config, error)
                on_event_for(config)({"event": "failed", "run": config.run_id})
                continue
            if done is None:
                waiting.append(config)
            else:
                on_event_for(config)({"event": "found", "run": config.run_id})
                outcome.note(config, done)
        if waiting:
            with connected(self.address, self.cpus, self.gpus) as ray, _signed(out.absolute()) as sign:
                Sweep(self, ray, out.absolute(), sign, outcome).work(waiting, on_event_for, stop)
        return outcome.in_order_of(configs)


@dataclass
class Job:
    """A run and the worker that has it."""

    config: RunConfig
    on_event: "OnEvent"
    worker: Any = None
    node: str | None = None  # on which a worker has begun it
    begun: bool = False  # by the worker of the moment
    losses: int = 0


@dataclass
class Sweep:
    """A connected cluster at work on one grid."""

    how: OnRay
    ray: Any
    out: Path
    sign: str
    outcome: Outcome

    def work(self, configs: Sequence[RunConfig], on_event_for: OnEventFor, stop: Stop) -> None:
        """All runs are handed over at once, and start when resources are free: a growing cluster sees the need."""
        self.exchange = _new_exchange(self.ray)
        self.jobs = {config.run_id: Job(config, on_event_for(config)) for config in configs}
        answers = {self._hand_over(job): job for job in self.jobs.values()}
        asked = False
        while answers:
            ready, _ = self.ray.wait(list(answers), num_returns=len(answers), timeout=SECONDS_BETWEEN_LOOKS)
            for run, item in self.ray.get(self.exchange.take.remote()):
                self._hear(self.jobs[run], *item)
            for answer in ready:
                job = answers.pop(answer)
                again = self._take(answer, job, asked)
                self.ray.kill(job.worker)
                if again:
                    answers[self._hand_over(job)] = job
            if stop() and not asked:
                asked = self.ray.get(self.exchange.ask_to_stop.remote())
                for job in answers.values():
                    if not job.begun:
                        self.ray.kill(job.worker)

    def _hand_over(self, job: Job) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from episodica.sweep.ray_worker import Order, Worker

        folder = self.out / job.config.run_id
        remove_leftovers(folder)
        order = Order(
            tree=job.config.tree(),
            out=self.out,
            sign=self.sign,
            disk=self.how.disk,
            threads=self.how.cpus,
            gpus=self.how.gpus,
            folder=Path.cwd(),
            environment={key: value for key, value in os.environ.items() if key.startswith("EPISODICA_")},
            pieces=[tuple(piece) for piece in Sender(folder).changed()] if self._may_be_far_away() else [],
        )
        # What a lost worker had on its own disk is there for the next one.
        near = {"scheduling_strategy": NodeAffinitySchedulingStrategy(job.node, soft=True)} if job.node else {}
        remote = self.ray.remote(num_cpus=self.how.cpus, num_gpus=self.how.gpus, max_restarts=0)(Worker)
        job.worker, job.begun = remote.options(**near).remote(), False
        return job.worker.run.remote(order, self.exchange)

    def _may_be_far_away(self) -> bool:
        nodes = sum(node["Alive"] for node in self.ray.nodes())
        return self.how.disk == "own" or (self.how.disk == "auto" and nodes > 1)

    def _hear(self, job: Job, kind: str, *what: Any) -> None:
        folder = self.out / job.config.run_id
        if kind == "piece":
            receive(Piece(*what), folder)
        elif kind == "names":
            keep_only(set(*what), folder)
        else:
            (event,) = what
            if event["event"] == "started":
                job.begun, job.node = True, event["node"]
            job.on_event(event)

    def _take(self, answer: Any, job: Job, asked: bool) -> bool:
        """Note the verdict on a run; true where its worker was lost and another one shall have it."""
        from ray.exceptions import RayError, RayTaskError

        try:
            self.outcome.note(job.config, self.ray.get(answer))
            return False
        except RayTaskError as error:
            self._fail(job, RuntimeError(f"its worker failed: {error.cause}"))
            return False
        except RayError as error:
            if asked:
                self.outcome.note(job.config, None)
                return False
            job.losses += 1
            if job.losses <= self.how.losses:
                job.on_event({"event": "notice", "text": f"its worker was lost; another one continues ({job.losses})"})
                return True
            self._fail(job, RuntimeError(f"its workers were lost {job.losses} times ({type(error).__name__})"))
            return False

    def _fail(self, job: Job, error: Exception) -> None:
        write_failure(job.config, self.out, traceback.format_exc())
        self.outcome.note(job.config, error)
        job.on_event({"event": "failed", "run": job.config.run_id})


def _finished(config: RunConfig, out: Path) -> Results | None:
    if not (out / config.run_id).exists():
        return None
    with RunFolder(out, config) as folder:
        return folder.finished()


@contextmanager
def _signed(out: Path) -> Iterator[str]:
    """A file in `out` that only those see who share its disk."""
    sign = out / f".seen-{uuid4().hex}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        sign.touch()
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror}; choose another output folder") from None
    try:
        yield sign.name
    finally:
        sign.unlink(missing_ok=True)


def _new_exchange(ray: Any) -> Any:
    """A process between workers and driver, beside the driver: another machine may be lost, and the command with it.

    Its class is a local one so that Ray sends its code: the process need not load ours, and with it torch.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    class Exchange:
        def __init__(self) -> None:
            self.items: list[tuple[str, Any]] = []
            self.stop = False

        def post(self, run: str, items: Sequence[Any]) -> bool:
            self.items += [(run, item) for item in items]
            return self.stop

        def take(self) -> list[tuple[str, Any]]:
            taken, self.items = self.items, []
            return taken

        def ask_to_stop(self) -> bool:
            self.stop = True
            return True

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=here)(Exchange).remote()
