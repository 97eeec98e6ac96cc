"""What a call to learn will do, or why it cannot: decided from images and wishes, before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from episodica.classifier.material import Material, Named, gather, listed, share_of
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.state import ModelState, StateRecord
from episodica.classifier.wishes import FIXED, Share, Wishes, a_few, fitting_size, settings
from episodica.config import RunConfig
from episodica.errors import InputError


@dataclass(frozen=True, eq=False)
class Call:
    """All that is decided before anything is trained."""

    state: ModelState | None  # to learn on from
    start: Mapping[str, Tensor]  # weights to begin with; none: fresh ones
    material: Material
    share: Share
    config: RunConfig
    wishes: Wishes


def plan_call(folder: ModelFolder, arriving: Named, wishes: Wishes, base: ModelFolder | None = None) -> Call:
    """What a call will do, or why it cannot."""
    state = folder.state() if folder.exists else None
    if state and base:
        raise InputError(f"--from is for a new model, and {folder.path} exists: leave it out, or choose another name")
    if not arriving:
        raise InputError("there is no image: put those of each class into a sub-folder of their own")
    origin = base.state() if base else state
    record = state.record if state else None
    wishes = wishes.with_budget_of(record)
    sessions = record.sessions if record else 0
    seed = wishes.overrides.get("seed", sessions)
    size = origin.config.image_size if origin else _size(arriving, wishes)
    material = gather(arriving, record, folder.vault, wishes, size, seed if isinstance(seed, int) else sessions)
    share = share_of(wishes, record, arriving)
    model = {section: origin.record.config[section] for section in FIXED} if origin else {}
    config = settings(material.amount, wishes, _memory(wishes, share, material, record), model, size, sessions)
    _check_droppable(config, material, record)
    return Call(state, origin.weights if origin else {}, material, share, config, wishes)


def summary(call: Call) -> dict[str, Any]:
    """The settings of a call that are worth showing, in the order in which a person asks."""
    config, amount = call.config, call.material.amount
    return {
        "new_classes": amount.new,
        "images": amount.images,
        "unseen_classes": len(call.material.unseen),
        "held_out_images": sum(map(len, call.material.held_out.values())),
        "exemplars_of_earlier_classes": sum(map(len, call.material.past.values())),
        "method": call.wishes.method,
        "image_size": config.image_size,
        "way": config.shape.way,
        "shots": config.shape.shots,
        "queries": config.shape.queries,
        "epochs": config.train.epochs,
        "steps": config.train.epochs * config.train.episodes,
        "keep": call.wishes.keep,
        "budget": call.wishes.budget,
    }


def _size(arriving: Named, wishes: Wishes) -> int:
    asked = wishes.overrides.get("data.size")
    everything = [image for images in arriving.values() for image in images]
    return asked if isinstance(asked, int) else fitting_size(a_few(everything))


def _check_droppable(config: RunConfig, material: Material, record: StateRecord | None) -> None:
    """Dropping the farthest exemplar takes distances, which classes have from the call that chose their exemplars."""
    if record is None or config.memory.total is None or config.memory.drop != "farthest":
        return
    past = {material.names[c] for c in material.past}
    without = sorted(stored.name for stored in record.classes if stored.name in past and stored.distances is None)
    if without:
        raise InputError(
            f"--memory.drop farthest: {listed(without)} came with --memory.select random, and how far those exemplars "
            "are from their class mean was not kept: leave --memory.drop out, or make a new model"
        )


def _memory(wishes: Wishes, share: Share, material: Material, record: StateRecord | None) -> dict[str, int]:
    """The memory's rule: what held-out images and unseen classes leave of the budget."""
    if wishes.budget is None:
        return {"memory.per_class": share.images - share.held_out}
    aside = sum(map(len, (*material.held_out.values(), *material.unseen.values())))
    for stored in record.classes if record else ():
        if stored.kind != "remembered":
            aside += min(len(stored.held_out), share.held_out)
        if stored.kind == "unseen":
            aside += min(len(stored.images), share.images - share.held_out)
    return {"memory.total": wishes.budget - aside}
