"""What a person reads about a model: one number, its interval, and what it was before."""

import torch

from episodica.classifier.state import Measured, StateRecord, Step, StoredClass
from episodica.classifier.summaries import ability
from episodica.classifier.trained_state import TrainedState


def step(accuracy: float | None, images: int, known: int | None) -> Step:
    measured = Measured(
        images=images,
        accuracy=accuracy,
        known=known,
        by_session={},
        forgetting=0.0,
        way=2,
        shots=5,
        few_shot=0.967,
        unseen=None,
        unseen_way=0,
        unknown_auroc=0.796,
    )
    return Step(what="learn", when="", classes=("a",), measured=measured)


def sentences(*steps: Step) -> str:
    classes = (StoredClass(name="a", kind="learned", images=()), StoredClass(name="b", kind="remembered", images=()))
    record = StateRecord(config={}, sessions=len(steps), classes=classes, history=steps)
    return "\n".join(ability(TrainedState("", record, {}, torch.empty(2, 3))))


def test_a_fall_is_said_and_nothing_beside_it_denies_it() -> None:
    text = sentences(step(0.84, 40, 10), step(0.59, 100, 30))
    assert "Accuracy on 100 held-out images, among all 30 classes: 59.0 % (95 % interval: 49.2 % to 68.1 %)." in text
    assert "After the call before, it was 84.0 %, among all 10 classes." in text
    assert (
        "known class and one of an unknown class, it tells which is which in 79.6 % of cases (guessing: 50 %)." in text
    )
    assert "lost" not in text
    assert "96.7" not in text


def test_the_first_call_has_nothing_before_it() -> None:
    text = sentences(step(1.0, 8, None))
    assert "The model knows 2 classes, 1 of them by training." in text
    assert "among all classes: 100.0 % (95 % interval: 67.6 % to 100.0 %)" in text
    assert "before" not in text


def test_without_held_out_images_nothing_is_claimed() -> None:
    assert "what it can do is not known" in sentences(step(None, 0, 2))
    assert sentences() == "The model knows 2 classes, 1 of them by training."
