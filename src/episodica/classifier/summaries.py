"""A model in words: what it can do, and what a call is about to do."""

from collections.abc import Iterator
from typing import Any

from episodica.classifier.state import Measured, ModelState


def ability(state: ModelState) -> Iterator[str]:
    """What the last call to learn has measured."""
    learned = state.record.of_kind("learned")
    last = next((step.measured for step in reversed(state.history) if step.measured), None)
    yield f"The model knows {len(state.classes)} classes, {len(learned)} of them by training."
    if last is None:
        return
    if last.accuracy is None:
        yield "No class had images to spare for measuring (4 are enough): what it can do is not known."
        return
    yield (
        f"On {last.images} held-out images of the classes learned: {percent(last.accuracy)} right among all of them"
        + (f", {percent(last.few_shot)} in {question(last)}." if last.few_shot is not None else ".")
    )
    if last.unseen is not None:
        yield f"On classes that it never trained on: {percent(last.unseen)} in {last.unseen_way}-way questions."
    if last.unknown_auroc is not None:
        yield f"An unknown class looks stranger to it than a known one in {percent(last.unknown_auroc)} of all pairs."
    if last.forgetting is not None:
        points = 100 * last.forgetting
        verb = "lost" if points >= 0 else "gained"
        yield f"Classes of earlier calls {verb} {abs(points):.1f} points against the best that was measured before."


def question(measured: Measured) -> str:
    return f"{measured.way}-way questions with {counted(measured.shots, 'example')} of each class"


def counted(number: int, one: str, more: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.1f} %"


def intention(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The settings of a call, each with its name."""
    s = settings
    yield "learn", f"{counted(s['new_classes'], 'class', 'classes')} from {s['images']:,} images"
    if s["exemplars_of_earlier_classes"]:
        yield "with", f"{s['exemplars_of_earlier_classes']:,} exemplars of earlier classes (method {s['method']})"
    yield "held out", f"{s['held_out_images']} images to measure with"
    if s["unseen_classes"]:
        yield "unseen", f"{s['unseen_classes']} classes, never trained on, to measure with (--unseen)"
    yield "images", f"{s['image_size']} x {s['image_size']} pixels"
    yield (
        "episodes",
        f"{s['way']} classes with {counted(s['shots'], 'example')} and {counted(s['queries'], 'question')} each "
        "(--shape.way, --shape.shots)",
    )
    yield "schedule", f"{counted(s['epochs'], 'epoch')}, {counted(s['steps'], 'step')} (--epochs)"
    kept = f"{s['keep']} images of each class (--keep)" if s["budget"] is None else f"{s['budget']} images (--budget)"
    yield "kept", f"{kept}, held-out ones included"
