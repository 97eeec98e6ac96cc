"""The training loop, the only one: sessions and steps, then memory and evaluation, with checkpoints on the way."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer

from episodica.engine.access import SessionAccess
from episodica.engine.checkpoint import (
    Checkpoint,
    Checkpoints,
    module_tensors,
    optimizer_tensors,
    restore_module,
    restore_optimizer,
)
from episodica.engine.consolidation import consolidate
from episodica.engine.evaluate import evaluate_session
from episodica.engine.experiment import Experiment, new_learner, new_method, notices
from episodica.engine.forward import Forward, frozen
from episodica.engine.frozen_part import FrozenPart
from episodica.engine.fused.accelerate import accelerate
from episodica.engine.fused.random_views import VIEWS
from episodica.errors import Interrupted
from episodica.memory import Kept, Memory
from episodica.methods.method import Method, Step
from episodica.records.results import Ledger
from episodica.records.run import EventLog, RunFolder
from episodica.rng import StepGenerators, generator
from episodica.types import Batch, Episodes, Pools

FRESH_VIEWS = (
    "{blocks} blocks of the backbone are frozen, and yet computed in every step, because every image drawn is a new "
    "random view: with augment.views: 4 they are computed once for each of 4 views of an image, without random "
    "augmentation once an image"
)
OnEvent = Callable[[Mapping[str, Any]], None]


def take_step(method: Method, step: Step, optimizer: Optimizer) -> dict[str, Tensor]:
    """Follow the gradient of the sum of the method's terms, which are returned."""
    terms = method.loss(step)
    optimizer.zero_grad()
    torch.stack(list(terms.values())).sum().backward()
    optimizer.step()
    return terms


@dataclass(frozen=True, eq=False)
class Start:
    """Where a run begins that goes on from an earlier one: only the last session of its stream is trained."""

    weights: Mapping[str, Tensor]  # `learner.*`; none: as it was initialised
    exemplars: Mapping[int, Kept]  # of the classes of earlier sessions


class Trainer:
    """Carries a run from where its last checkpoint left it to the end."""

    def __init__(self, experiment: Experiment, folder: RunFolder, on_event: OnEvent, stop: Callable[[], bool]) -> None:
        self.experiment, self.config, self.stream = experiment, experiment.config, experiment.stream
        self.folder, self.on_event, self.stop = folder, on_event, stop
        self.checkpoints = Checkpoints.of(folder.checkpoints, experiment.config)
        self.learner = new_learner(self.config, experiment.device, over=experiment.over)
        self.method = new_method(self.config, experiment.device)
        self._view = VIEWS["torch"]
        self.memory = Memory(self.config.memory_rules)
        self.ledger = Ledger(self.config, experiment.split.hash)
        self.session = self.step = 0
        self._steps = [self.config.steps(tasks) for tasks in self.stream.lengths]
        self.seconds_train = 0.0
        self.saved_at = time.monotonic()

    def accelerate(self, notice: Callable[[str], None]) -> Literal["torch", "fused"]:
        """Let the compiled kernels do what they can, as the config asks; returns what computes."""
        computing = accelerate(self.learner, self.config.kernels, notice)
        self._view = VIEWS[computing]
        return computing

    def run(self, first_notices: Sequence[str] = (), start: Start | None = None) -> None:
        """From the last checkpoint, else from `start`, else from the beginning; `first_notices` are logged first."""
        last = self.checkpoints.latest()
        tensors = {} if last is None else self._restore(last)
        if last is not None:
            self.checkpoints.remove_others(last)
        if self.session == len(self.stream.train):
            return
        with EventLog(self.folder.folder, keep=last.events if last else 0) as self.events:
            if last is None and start is not None:
                self._begin_from(start)
            own_notices = notices(self.config, self.stream) if last is None and start is None else ()
            for text in (*first_notices, *self.events.damage, *own_notices):
                self._notice(text)
            self.frozen = FrozenPart.of(self.learner, self.stream, self.experiment.pixels, self._notice)
            while self.session < len(self.stream.train):
                self._session(tensors)
                self.session, self.step, self.seconds_train, tensors = self.session + 1, 0, 0.0, {}

    def _begin_from(self, start: Start) -> None:
        """Written as the end of the session before: the old model is read from there when the run is continued."""
        if start.weights:
            restore_module("learner", self.learner, start.weights)
        self.memory.kept = dict(start.exemplars)
        self.session = len(self.stream.train) - 2
        self._save({}, ended=True)
        self.session += 1

    def _session(self, tensors: Mapping[str, Tensor]) -> None:
        """One task, from its start or, where there are `tensors` of a checkpoint within it, from there."""
        pools = Pools(self.stream.train[self.session], self.memory.pool())
        rng = partial(generator, self.config.seed, self.session)
        teacher = frozen(self.learner) if self.session else None
        if tensors and teacher is not None:
            restore_module("learner", teacher, self.checkpoints.at_end_of(self.session - 1))
        store, device = self.experiment.compressed or self.experiment.store, self.experiment.device
        access = SessionAccess(
            store, self.config.augment, device, pools, rng, self.learner, teacher, self.frozen, self._view
        )
        if not tensors:
            self._log("session", classes=len(pools.current), memory=len(self.memory))
            self.method.begin(access, pools)
        parameters = [p for p in (*self.learner.parameters(), *self.method.parameters()) if p.requires_grad]
        if parameters:
            optimizer = self.method.optimizer(parameters, self.config.train)
            restore_optimizer(optimizer, tensors)
            forward = Forward.for_session(self.config, self.session, self.steps, access, self.learner, teacher)
            if self.session == self.step == 0 and self.frozen is not None and forward.all_fresh:
                self._notice(FRESH_VIEWS.format(blocks=self.learner.backbone.frozen))
            self._train(pools, forward, optimizer)
        elif self.session == 0:
            self._notice("no block of the backbone trains and nothing else has weights: there is nothing to train")
        if teacher is not None and self.config.train.consolidate < 1:
            consolidate(self.learner, teacher, self.config.train.consolidate)
        if self.config.replays:
            embed = partial(access.embed_for_choice, self.learner)
            self.memory.add(pools.current, embed, rng("engine.memory"), self.experiment.compressed)
        self.method.end(access, pools)
        if self.learner.sums_up:
            current = pools.current
            self.learner.sum_up(
                access.embed(self.learner, current.images()), current.classes.repeat_interleave(current.counts)
            )
        access.close()
        if self.stream.evaluated:
            self._evaluate()
        self._save({}, ended=True)

    @property
    def epochs(self) -> int:
        return self.config.epochs * self.stream.lengths[self.session]

    @property
    def steps(self) -> int:
        return self._steps[self.session]

    def _train(self, pools: Pools, forward: Forward, optimizer: Optimizer) -> None:
        train, shape = self.config.train, self.config.training_shape
        self.learner.train()
        self.method.train()
        while self.step < self.steps:
            started = time.perf_counter()
            epoch = self.epochs * self.step // self.steps
            for group in optimizer.param_groups:
                group["lr"] = self.method.rate(self.step, self.steps, train)
            rng = StepGenerators(self.config.seed, self.session, self.step, self.steps)
            draws = self.method.draw(pools, shape, rng)
            if self.step == 0:
                self._notice_narrow(draws)
            terms = take_step(self.method, forward(draws, rng), optimizer)
            self.step += 1
            self.seconds_train += time.perf_counter() - started
            if self.step % train.log_every == 0 or self.step == self.steps:
                self._log_step(epoch, terms, optimizer.param_groups[0]["lr"])
            stop, due = self.stop(), time.monotonic() - self.saved_at >= train.checkpoint_seconds
            if stop or due or self.step == self.steps:
                self._save(optimizer_tensors(optimizer), ended=False)
            if stop:
                raise Interrupted

    def _evaluate(self) -> None:
        started = time.perf_counter()
        accuracies = {}
        for name, shape, values in evaluate_session(self.learner, self.experiment, self.session, self.frozen):
            accuracies[name, shape] = values.double().numpy()
            mean = float(accuracies[name, shape].mean())
            self._log("evaluation", on=name, way=shape.way, shots=shape.shots, mean=mean)
            if self.stop():
                raise Interrupted
        classes = sum(len(pool) for pool in self.stream.train[: self.session + 1])
        rows = self.ledger.add(classes, accuracies, self.seconds_train, time.perf_counter() - started)
        self._log("result", **rows[0].model_dump())
        names = {f"{shape.way}way-{shape.shots}shot-{name}": values for (name, shape), values in accuracies.items()}
        self.folder.write_episodes(self.session, names)
        self.folder.write("exemplars.json", {"session": self.session + 1, "classes": self.memory.to_json()})

    def _log_step(self, epoch: int, terms: Mapping[str, Tensor], lr: float) -> None:
        loss = {name: term.item() for name, term in terms.items()}
        if not all(abs(value) < float("inf") for value in loss.values()):
            raise FloatingPointError(
                f"the loss is no longer finite in session {self.session + 1} at step {self.step} ({loss}): "
                "lower the learning rate (train.lr or method.lr), or look at the images"
            )
        self._log("step", step=self.step, epoch=epoch + 1, lr=lr, loss=loss, seconds=self.seconds_train)

    def _log(self, event: str, **values: Any) -> None:
        """To the file and to the caller. How many steps and sessions there are stands in every event."""
        place = {"session": self.session + 1, "sessions": len(self.stream.train), "steps": self.steps}
        record = {"event": event, **place, **values}
        self.events(record)
        self.on_event(record)

    def _notice(self, text: str) -> None:
        self._log("notice", text=text)

    def _notice_narrow(self, draws: Mapping[str, Episodes | Batch]) -> None:
        for name, drawn in draws.items():
            way = drawn.rows.shape[1] if isinstance(drawn, Episodes) else self.config.shape.way
            if way < self.config.shape.way:
                self._notice(f"session {self.session + 1} has classes for {way}-way `{name}` episodes only")

    def _save(self, optimizer: Mapping[str, Tensor], *, ended: bool) -> None:
        checkpoint = Checkpoint(
            session=self.session,
            step=self.step,
            ended=ended,
            events=self.events.position(),
            seconds_train=self.seconds_train,
            memory=self.memory.to_json(),
            results=self.ledger.to_json(),
        )
        modules = {
            **module_tensors("learner", self.learner),
            **module_tensors("method", self.method),
        }
        self.checkpoints.save(checkpoint, {**modules, **optimizer})
        self.saved_at = time.monotonic()
        self.folder.write_results(self.ledger.results("running"))

    def _restore(self, checkpoint: Checkpoint) -> dict[str, Tensor]:
        """Take over a checkpoint; the tensors of one within a session are returned for the optimiser."""
        tensors = self.checkpoints.tensors(checkpoint)
        restore_module("learner", self.learner, tensors)
        restore_module("method", self.method, tensors)
        self.memory.restore(checkpoint.memory)
        self.ledger.restore(checkpoint.results)
        if checkpoint.ended:
            self.session = checkpoint.session + 1
            return {}
        self.session, self.step, self.seconds_train = checkpoint.session, checkpoint.step, checkpoint.seconds_train
        return tensors
