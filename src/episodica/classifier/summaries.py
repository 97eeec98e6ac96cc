"""Sentences about a model and a call: what the model can do, what the call is about to do, and how it was stopped."""

from collections.abc import Iterator

from episodica.classifier.exact_plan import ExactCall
from episodica.classifier.plan import Call, summary
from episodica.classifier.state import Measured, ModelState
from episodica.errors import listed
from episodica.records.results import wilson_interval

ADAPT = {
    "yes": "an adapter is trained over the encoder",
    "auto": "what is better on held-out images and on unseen classes: the encoder as it is, or with a trained adapter",
}


def ability(state: ModelState) -> Iterator[str]:
    """What the last call to learn has measured, and what the call before it had."""
    yield _knowledge(state)
    calls = [step.measured for step in state.history if step.measured]
    if not calls:
        return
    last, before = calls[-1], calls[-2] if len(calls) > 1 else None
    if last.accuracy is None:
        yield _why_unmeasured(state)
        return
    low, high = wilson_interval(last.accuracy, last.images)
    yield (
        f"Accuracy on {_asked(state, last.images)}, {_among(last)}: {percent(last.accuracy)} "
        f"(95 % interval: {percent(low)} to {percent(high)})."
    )
    if before and before.accuracy is not None:
        yield f"After the call before, it was {percent(before.accuracy)}, {_among(before)}."
    if last.unseen is not None:
        yield (
            f"Classes that it never trained on: {percent(last.unseen)} among {last.unseen_way} at a time, from a few "
            "images each."
        )
    if last.unknown_auroc is not None:
        yield (
            "Shown an image of a known class and one of an unknown class, it tells which is which in "
            f"{percent(last.unknown_auroc)} of cases (guessing: 50 %)."
        )


def _knowledge(state: ModelState) -> str:
    classes = f"The model knows {counted(len(state.classes), 'class', 'classes')}"
    if state.keeps_points:
        return f"{classes} from {counted(sum(map(state.images_of, state.classes)), 'image')}."
    return f"{classes}, {len(state.record.of_kind('learned'))} of them by training."


def _why_unmeasured(state: ModelState) -> str:
    if not state.keeps_points:
        return "No class had images to spare for measuring (4 are enough): what it can do is not known."
    if len(state.classes) < 2:
        return "There is nothing to tell apart yet: learn or remember another class."
    return "No class has two images: what the model can do is not known."


def _asked(state: ModelState, images: int) -> str:
    return (
        f"{counted(images, 'image')}, each left out in turn"
        if state.keeps_points
        else counted(images, "held-out image")
    )


def _among(measured: Measured) -> str:
    return f"among all {measured.known} classes" if measured.known else "among all classes"


def counted(number: int, one: str, more: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.1f} %"


def intention(call: Call | ExactCall) -> Iterator[tuple[str, str]]:
    """The settings of a call, each with its name."""
    return _exact_intention(call) if isinstance(call, ExactCall) else _training_intention(call)


def interruption(call: Call | ExactCall) -> str:
    """What a call that was stopped has left behind. Training goes on from its checkpoint; embedding starts again."""
    if isinstance(call, ExactCall):
        return "Interrupted; nothing is learned yet, and the model is as it was. Run the same command again."
    return "Interrupted; everything is saved. Run the same command again to continue."


def _exact_intention(call: ExactCall) -> Iterator[tuple[str, str]]:
    backbone = call.config.backbone.declared()
    trained = f", trained on {backbone.trained_on}" if backbone.trained_on else ""
    yield "encoder", f"{_encoder_name(call)}{trained} and frozen: {call.reason or 'that of the model'}"
    if call.adapt != "no":
        yield "adapt", ADAPT[call.adapt]
    yield "learn", f"{counted(len(call.arriving), 'class', 'classes')} from {counted(call.images, 'image')}"
    size = call.config.image_size
    yield "images", f"{size} x {size} pixels"
    kept = f"{call.keep} images of each class (--keep)" if call.budget is None else f"{call.budget} images (--budget)"
    yield "kept", f"the embeddings of all images, and {kept}"


def _encoder_name(call: ExactCall) -> str:
    fields = call.config.backbone.model_dump(mode="json", exclude_defaults=True)
    others = " ".join(f"{name} {value}" for name, value in fields.items() if name != "name")
    return f"{call.config.backbone.name} {others}".strip()


def _training_intention(call: Call) -> Iterator[tuple[str, str]]:
    s = summary(call)
    if call.reason:
        yield "encoder", f"{call.config.backbone.name}, trained from nothing: {call.reason}"
    yield "learn", f"{counted(s['new_classes'], 'class', 'classes')} from {s['images']:,} images"
    if s["exemplars_of_earlier_classes"]:
        yield "with", f"{s['exemplars_of_earlier_classes']:,} exemplars of earlier classes"
    yield "held out", f"{s['held_out_images']} images to measure with"
    if s["too_few_images"]:
        names = listed([f"{name} ({count})" for name, count in s["too_few_images"].items()])
        yield "too few", f"{names}: not trained on, known by the mean of the images; training is as without"
    if s["unseen_classes"]:
        yield "unseen", f"{s['unseen_classes']} classes, never trained on, to measure with (--unseen)"
    yield "images", f"{s['image_size']} x {s['image_size']} pixels"
    yield "method", f"{s['method']} (--method)"
    if s["method"] == "nrd":
        images = call.config.training_shape.images
        exemplars = " and as many exemplars" if s["exemplars_of_earlier_classes"] else ""
        yield "a step", f"{images} images{exemplars} (--shape.way, --shape.shots, --shape.queries)"
    else:
        yield (
            "episodes",
            f"{s['way']} classes with {counted(s['shots'], 'example')} and {counted(s['queries'], 'question')} each "
            "(--shape.way, --shape.shots)",
        )
    yield "schedule", f"{counted(s['epochs'], 'epoch')}, {counted(s['steps'], 'step')} (--epochs)"
    kept = f"{s['keep']} images of each class (--keep)" if s["budget"] is None else f"{s['budget']} images (--budget)"
    yield "kept", f"{kept}, held-out ones included"
