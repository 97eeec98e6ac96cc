"""What a call to learn will do, or why it cannot: decided from images and options, before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from episodica.classifier.encoder_choice import chosen
from episodica.classifier.exact_plan import ExactCall, plan_exact_call
from episodica.classifier.exact_state import ExactState
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import FIXED, LearnOptions, Share, a_few, fitting_size, settings
from episodica.classifier.session_data import Named, SessionData, gather, quoted, share_of
from episodica.classifier.state import ModelState, StateRecord
from episodica.config import RunConfig
from episodica.errors import InputError, listed
from episodica.lazy_torch import Tensor


@dataclass(frozen=True, eq=False)
class Call:
    """All that is decided before anything is trained."""

    state: ModelState | None  # to learn on from
    start: Mapping[str, Tensor]  # weights to begin with; none: fresh ones
    session_data: SessionData
    share: Share
    config: RunConfig
    options: LearnOptions
    reason: str | None = None  # for training a new model, instead of taking an encoder that has seen photographs


def plan_call(
    folder: ModelFolder, arriving: Named, options: LearnOptions, base: ModelFolder | None = None
) -> Call | ExactCall:
    """What a call will do, or why it cannot. The first call decides whether a model is trained or exact."""
    state = folder.state() if folder.exists else None
    if state and base:
        raise InputError(
            f"a model to start from is for a new model, and {folder.path} exists: leave it out, or choose another name"
        )
    if not arriving:
        raise InputError("there is no image: put those of each class into a sub-folder of their own")
    origin = base.state() if base else state
    choice = None if origin else chosen([image for images in arriving.values() for image in images], options)
    if isinstance(origin, ExactState):
        return plan_exact_call(arriving, options, state, origin)
    if choice and choice.frozen:
        return plan_exact_call(arriving, options, None, None, choice)
    if options.adapt in ("auto", "yes"):
        raise InputError(
            f"--adapt {options.adapt} is about a frozen encoder, and this model's network is trained: leave it out, or "
            "make a new model with --backbone.name efficientnet_lite"
        )
    record = state.record if state else None
    options = options.with_budget_of(record).with_method_of(origin.config.method.name if origin else None)
    sessions = record.sessions if record else 0
    seed = options.overrides.get("seed", sessions)
    size = origin.config.image_size if origin else _size(arriving, options)
    session_data = gather(arriving, record, folder.vault, options, size, seed if isinstance(seed, int) else sessions)
    share = share_of(options, record, arriving)
    model = {section: origin.record.config[section] for section in FIXED} if origin else {}
    config = settings(
        session_data.amount, options, _memory(options, share, session_data, record), model, size, sessions
    )
    _refuse_idle(config)
    _check_droppable(config, session_data, record)
    weights = origin.weights if origin else {}
    return Call(state, weights, session_data, share, config, options, choice.reason if choice else None)


def summary(call: Call) -> dict[str, Any]:
    """The settings of a call that are worth showing, in the order in which a person asks."""
    config, amount = call.config, call.session_data.amount
    return {
        "new_classes": amount.new,
        "images": amount.images,
        "unseen_classes": len(call.session_data.unseen),
        "too_few_images": {call.session_data.names[c]: len(rows) for c, rows in call.session_data.by_mean.items()},
        "held_out_images": sum(map(len, call.session_data.held_out.values())),
        "exemplars_of_earlier_classes": sum(map(len, call.session_data.past.values())),
        "method": call.options.method,
        "image_size": config.image_size,
        "way": config.shape.way,
        "shots": config.shape.shots,
        "queries": config.shape.queries,
        "epochs": config.train.epochs,
        "steps": config.steps(),
        "keep": call.options.keep,
        "budget": call.options.budget,
    }


def _size(arriving: Named, options: LearnOptions) -> int:
    asked = options.overrides.get("data.size")
    everything = [image for images in arriving.values() for image in images]
    return asked if isinstance(asked, int) else fitting_size(a_few(everything))


def _refuse_idle(config: RunConfig) -> None:
    """A field that does nothing for the method was meant to do something."""
    if config.ignored:
        verb, them = ("does", "it") if len(config.ignored) == 1 else ("do", "them")
        raise InputError(
            f"{listed(config.ignored)} {verb} nothing for method {config.method.name}: leave {them} out; `episodica "
            "list methods` shows what the method has instead, such as method.lr"
        )


def _check_droppable(config: RunConfig, session_data: SessionData, record: StateRecord | None) -> None:
    """Dropping the farthest exemplar takes distances, which classes have from the call that chose their exemplars."""
    if record is None or config.memory.total is None or config.memory.drop != "farthest":
        return
    past = {session_data.names[c] for c in session_data.past}
    without = sorted(stored.name for stored in record.classes if stored.name in past and stored.distances is None)
    if without:
        raise InputError(
            f"memory.drop = farthest: {quoted(without)} came with memory.select = random, and how far those exemplars "
            "are from their class mean was not kept: leave memory.drop out, or make a new model"
        )


def _memory(
    options: LearnOptions, share: Share, session_data: SessionData, record: StateRecord | None
) -> dict[str, int]:
    """The memory's rule: what held-out images and unseen classes leave of the budget."""
    if options.budget is None:
        return {"memory.per_class": share.images - share.held_out}
    aside = sum(map(len, (*session_data.held_out.values(), *session_data.unseen.values())))
    for stored in record.classes if record else ():
        if stored.kind != "remembered":
            aside += min(len(stored.held_out), share.held_out)
        if stored.kind == "unseen":
            aside += min(len(stored.images), share.images - share.held_out)
    return {"memory.total": options.budget - aside}
