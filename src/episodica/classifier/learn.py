"""One more session of a model: new images become classes that it tells apart, and the old ones are kept.

The session is trained by the engine's loop. What a model needs around it is here: an experiment made of the new images
and the stored exemplars, the weights and exemplars to start from, and the state that comes out.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

import torch
from torch import Tensor

from episodica.classifier.exact_learn import learn_exactly
from episodica.classifier.exact_plan import ExactCall
from episodica.classifier.history import Draft, now
from episodica.classifier.measure import Evidence, measure
from episodica.classifier.model_folder import CALL, ModelFolder
from episodica.classifier.plan import Call, summary
from episodica.classifier.state import ModelState, StateRecord, Step, StoredClass
from episodica.classifier.trained_state import TrainedState, weights_digest
from episodica.data.cache import Arrays, build_once
from episodica.data.store import ImageStore
from episodica.data.stream import TaskStream
from episodica.engine.checkpoint import module_tensors
from episodica.engine.device import computing, pick_device
from episodica.engine.experiment import Experiment
from episodica.engine.run import reading_event, train_to_the_end
from episodica.engine.trainer import OnEvent, Start, Trainer
from episodica.errors import InputError
from episodica.memory import Kept, Memory
from episodica.records.run import RunFolder


def learn(
    folder: ModelFolder, call: Call | ExactCall, on_event: OnEvent, stop: Callable[[], bool] = lambda: False
) -> ModelState:
    """Make what has been learned the model's present state. For the writer of the folder only."""
    if isinstance(call, ExactCall):
        return learn_exactly(folder, call, on_event, stop)
    return _train(folder, call, on_event, stop)


def _train(folder: ModelFolder, call: Call, on_event: OnEvent, stop: Callable[[], bool]) -> ModelState:
    _claim_work(folder, call, on_event)
    with computing(call.config.threads):
        arrays = _decoded(folder, call, on_event)
        split = call.session_data.split(arrays.fingerprint)
        device = pick_device(call.config.device)
        store = ImageStore(arrays.images)
        experiment = Experiment(call.config, store, split, TaskStream.of(split), arrays.class_names, device)
        with RunFolder(folder.work, call.config) as run:
            trainer = train_to_the_end(experiment, run, on_event, stop, _start(call))
        on_event({"event": "measuring"})
        state, data = _outcome(folder, call, store, trainer), call.session_data
        return folder.commit(state, Draft("learn", state.history[-1].classes, images=data.amount.images))


def _decoded(folder: ModelFolder, call: Call, on_event: OnEvent) -> Arrays:
    source, size = call.session_data.source, call.config.image_size
    try:
        return build_once(folder.work / "images", size, lambda: nullcontext(source), partial(reading_event, on_event))
    except InputError:  # of images: there is nothing to continue
        folder.drop_work()
        raise


def _claim_work(folder: ModelFolder, call: Call, on_event: OnEvent) -> None:
    """Work of the same call is continued, that of another one is dropped."""
    mine = {
        "weights": weights_digest(call.start) if call.start else None,
        "config": call.config.run_id,
        "images": call.session_data.stamp,
        "classes": call.session_data.names,
    }
    found = folder.call()
    if found == mine:
        on_event({"event": "notice", "text": "continuing the call that was interrupted"})
        return
    if found:
        on_event({"event": "notice", "text": "another call was interrupted before: its work is dropped"})
    folder.drop_work()
    folder.work.write_json(CALL, mine)


def _start(call: Call) -> Start:
    """The weights of the model and the exemplars of its earlier classes."""
    past, names = call.session_data.past, call.session_data.names
    return Start(call.start, {c: Kept(rows, _distances(call, names[c])) for c, rows in past.items()})


def _distances(call: Call, name: str) -> list[float] | None:
    stored = _stored(call, name)
    return list(stored.distances) if stored and stored.distances is not None else None


def _stored(call: Call, name: str) -> StoredClass | None:
    return next((c for c in call.state.classes if c.name == name), None) if call.state else None


def _outcome(folder: ModelFolder, call: Call, store: ImageStore, trainer: Trainer) -> ModelState:
    """The state after the session: exemplars chosen, classes placed among the new embeddings, measured."""
    classes = _classes(folder, call, store, trainer.memory)
    earlier = call.state.record if call.state else None
    record = StateRecord(
        config=call.config.tree(),
        sessions=(earlier.sessions if earlier else 0) + 1,
        classes=tuple(classes),
        keep=call.options.keep,
        budget=call.options.budget,
        history=earlier.history if earlier else (),
    )
    weights = module_tensors("learner", trainer.learner)
    size = call.config.image_size
    blank = TrainedState.blank(record, weights).recogniser()

    def embedded(digests: Sequence[str]) -> Tensor:
        return torch.from_numpy(blank.embed(folder.vault.load(digests, size)))

    evidence = [Evidence(c.name, c.kind, c.session, embedded(c.images), embedded(c.held_out)) for c in classes]
    prototypes = torch.stack([one.support.mean(0) for one in evidence])
    before = [step.measured for step in record.history if step.measured]
    measured, calibration = measure(TrainedState("", record, weights, prototypes).recogniser(), evidence, before)
    step = Step(
        what="learn",
        when=now(),
        classes=tuple(call.session_data.names[c] for c in call.session_data.brought),
        settings=summary(call),
        measured=measured,
    )
    finished = record.model_copy(update={"calibration": calibration, "history": (*record.history, step)})
    return TrainedState("", finished, weights, prototypes)


def _classes(folder: ModelFolder, call: Call, store: ImageStore, memory: Memory) -> list[StoredClass]:
    """Every class with the images that stay of it."""
    session_data, session = call.session_data, (call.state.record.sessions if call.state else 0) + 1

    def kept(rows: list[int]) -> tuple[str, ...]:
        unknown = [row for row in rows if row not in session_data.digests]
        squares = store.read(torch.tensor(unknown, dtype=torch.int64)).numpy()
        session_data.digests.update(zip(unknown, map(folder.vault.put, squares), strict=True))
        return tuple(session_data.digests[row] for row in rows)

    found = []
    for c, exemplars in memory.kept.items():
        name = session_data.names[c]
        stored = _stored(call, name)
        found.append(
            StoredClass(
                name=name,
                kind="learned",
                session=stored.session if stored and stored.session else session,
                images=kept(exemplars.rows),
                distances=None if exemplars.distances is None else tuple(exemplars.distances),
                held_out=_held_out(call, stored, kept(session_data.held_out.get(c, []))),
            )
        )
    for c, rows in session_data.unseen.items():
        aside = kept(session_data.held_out[c])
        found.append(StoredClass(name=session_data.names[c], kind="unseen", images=kept(rows), held_out=aside))
    for c, rows in session_data.by_mean.items():
        images = tuple(dict.fromkeys(kept(rows)))
        found.append(StoredClass(name=session_data.names[c], kind="remembered", images=images))
    for stored in call.state.classes if call.state else ():
        if stored.kind != "learned" and stored.name not in session_data.names:
            share = None if stored.kind == "remembered" or call.options.budget is None else call.share
            most = share.images - share.held_out if share else None
            aside = _held_out(call, stored, ())
            found.append(stored.model_copy(update={"images": stored.images[:most], "held_out": aside}))
    return found


def _held_out(call: Call, stored: StoredClass | None, added: tuple[str, ...]) -> tuple[str, ...]:
    """With a total budget, the share of every class shrinks as classes come."""
    everything = (*(stored.held_out if stored else ()), *added)
    return everything if call.options.budget is None else everything[: call.share.held_out]
