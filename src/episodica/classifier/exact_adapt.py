"""An adapter over the points of a model: trained where that is asked for, and kept where it earns its place."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from episodica.classifier.adaptation import FOLDS, compared_with_training, in_words
from episodica.classifier.adapter import HeldOut
from episodica.classifier.adapter_training import AsOne, Training
from episodica.classifier.exact_state import ExactState
from episodica.classifier.history import COMMAND, Draft
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import Adapt
from episodica.classifier.state import ModelState
from episodica.engine.device import computing
from episodica.engine.trainer import OnEvent
from episodica.errors import InputError
from episodica.learners import conformal
from episodica.learners.exact import FALSE_REJECTS, ExactClassifier
from episodica.learners.statistics import Statistics

WHAT = "an adapter trained over the encoder"
TOO_FEW = "no adapter is trained: it takes two classes with two images or more"
FROZEN_ONLY = "an adapter is trained over a frozen encoder, and this model's network is trained as it is"
SEEDS = 1000  # apart: those of a call, and of what is trained to compare with


def adapt(
    folder: ModelFolder,
    how: Adapt,
    on_event: OnEvent = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
    *,
    threads: int | None = None,
    who: str = COMMAND,
) -> ModelState:
    """Train an adapter on all that a model knows (`yes`), if that is better (`auto`), or leave it out again (`no`).

    Progress are the events of training; where `stop` says so, `Interrupted` is raised and the model is as it was.
    """
    with folder.writing(), computing(threads):
        state = folder.state()
        if not isinstance(state, ExactState):
            raise InputError(FROZEN_ONLY)
        adapted = adapting(folder, state, {}, how, on_event, stop)
        return folder.commit(adapted, Draft("adapt", who=who))


def adapting(
    folder: ModelFolder,
    state: ExactState,
    arriving: Mapping[str, np.ndarray],
    how: Adapt,
    on_event: OnEvent,
    stop: Callable[[], bool],
) -> ExactState:
    """The state with the adapter that it shall have once these points have come to it."""
    if how == "no":
        return state.with_adapter(how)
    known = state.statistics_with(arriving)
    folder.drop_work()  # of a training that was stopped
    seed = state.record.sessions
    if how == "auto":
        train = Training(folder.work, AsOne(on_event, FOLDS), stop)
        found = compared_with_training(
            known.classes,
            lambda part, i: train(part, seed=seed + SEEDS * (i + 1)),
            lambda: on_event({"event": "measuring"}),
        )
        on_event({"event": "notice", "text": in_words(found, WHAT)})
        if found is None or not found.better:
            return state.with_adapter(how)
    train = Training(folder.work, AsOne(on_event, 1 + FOLDS), stop)
    before = state.encoders.adapter(state.record.encoder, known.width)
    adapter = train(known.classes, set(state.statistics.names), before, seed)
    if adapter is None:
        on_event({"event": "notice", "text": TOO_FEW})
        return state.with_adapter(how)
    return state.with_adapter(how, adapter, held_out(known, partial(train, seed=seed)))


def held_out(known: Statistics, train: Callable[..., Callable[[np.ndarray], np.ndarray] | None]) -> HeldOut:
    """A third of all images in turn, asked of what was trained on the others: how much higher the limit must be than
    that of images which an adapter was trained on, and the share that is recognised."""
    right, strangeness, weights, limits = [], [], [], []
    for fold in range(FOLDS):
        aside = {name: np.arange(len(points)) % FOLDS == fold for name, points in known.classes.items()}
        part = {name: points[~aside[name]] for name, points in known.classes.items() if (~aside[name]).any()}
        turn = train(part)
        if turn is None:
            continue
        model = ExactClassifier.fitted(Statistics.of({n: turn(points) for n, points in part.items()}, known.width))
        limits.append(model.limit(FALSE_REJECTS))
        for place, name in enumerate(model.names):
            asked = known.classes[name][aside[name]]
            if len(asked):
                turned = turn(asked)
                right.append(model.scores(turned).argmax(1) == place)
                strangeness.append(model.strangeness(turned))
                weights.append(np.full(len(asked), 1 / len(asked)))
    if not right or not all(limit < float("inf") for limit in limits):
        return HeldOut()
    limit = conformal.limit(np.concatenate(strangeness), np.concatenate(weights), FALSE_REJECTS)
    answers = np.concatenate(right)
    return HeldOut(limit - sum(limits) / len(limits), float(answers.mean()), len(answers))
