"""Sessions of a model: what is kept, what is measured, what is refused. Training itself is the engine's."""

import shutil
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from episodica import InputError
from episodica.classifier.images import pixels
from episodica.classifier.incoming.read import read_classes
from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import LearnOptions, Share, check_overrides, fitting_size, too_few
from episodica.classifier.plan import Call, plan_call, summary
from episodica.classifier.state import ModelState
from episodica.classifier.summaries import intention
from episodica.classifier.trained_state import weights_digest
from episodica.errors import Interrupted

QUICK = {"data.size": 16, "train.episodes": 2, "device": "cpu", "kernels": "torch"}
RELATIONS = {"learner.name": "relationnet", "backbone.pools": 2}
LATER = {key: value for key, value in QUICK.items() if key != "data.size"}


def _call(model: Path, images: Path, **options) -> Call:
    folder = ModelFolder(model)
    overrides = (LATER if folder.exists else QUICK) | options.pop("overrides", {})
    base = options.pop("base", None)
    call = plan_call(folder, read_classes(images).classes, LearnOptions(epochs=1, overrides=overrides, **options), base)
    assert isinstance(call, Call)
    return call


def _learn(model: Path, images: Path, **options) -> ModelState:
    return _learn_call(_call(model, images, **options), model)


def _learn_call(call: Call, model: Path) -> ModelState:
    folder = ModelFolder(model)
    with folder.writing():
        return learn(folder, call, lambda event: None)


def _spoil(call: Call) -> None:
    """After the call was planned, one of its images is no longer what it was."""
    next(image for image in call.session_data.images if isinstance(image, Path)).write_bytes(b"no image")


def _kept(state: ModelState) -> dict[str, tuple[int, int]]:
    return {stored.name: (len(stored.images), len(stored.held_out)) for stored in state.classes}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tmp_path / "model"


def test_each_call_is_a_session_and_earlier_folders_are_not_needed(model, write_classes):
    first = write_classes("first", {"a": 0, "b": 1, "c": 2})
    state = _learn(model, first, keep=10)
    assert _kept(state) == dict.fromkeys("abc", (8, 2))
    first.rename(first.with_name("gone"))
    state = _learn(model, write_classes("second", {"d": 3, "e": 4}))
    assert _kept(state) == dict.fromkeys("abcde", (8, 2))
    assert [stored.session for stored in state.classes] == [1, 1, 1, 2, 2]
    measured = state.history[-1].measured
    assert measured is not None
    assert measured.images == 10
    assert set(measured.by_session) == {1, 2}
    assert measured.forgetting == pytest.approx(
        state.history[0].measured.by_session[1] - measured.by_session[1]  # type: ignore[union-attr]
    )
    assert not ModelFolder(model).work.exists()


def test_held_out_images_are_never_trained_on_and_count_in_the_budget(model, write_classes):
    images = write_classes("first", {"a": 0, "b": 1, "c": 2, "d": 3})
    session_data = _call(model, images, budget=40).session_data
    trained = {row for rows in session_data.new.values() for row in rows}
    aside = {row for rows in session_data.held_out.values() for row in rows}
    assert len(aside) == 4 * 2
    assert not trained & aside
    state = _learn(model, images, budget=40)
    assert sum(map(sum, _kept(state).values())) == 40
    state = _learn(model, write_classes("second", {"e": 4, "f": 5}))
    assert sum(map(sum, _kept(state).values())) <= 40
    assert all(held == 1 for _, held in _kept(state).values())


def test_every_class_is_learned_unless_some_are_to_stay_unseen(model, write_classes):
    call = _call(model, write_classes("first", {f"c{c}": c for c in range(12)}, count=4))
    assert (len(call.session_data.new), len(call.session_data.unseen)) == (12, 0)


def test_unseen_classes_are_known_all_the_same(model, write_classes):
    images = write_classes("first", {f"c{c}": c for c in range(10)}, count=6)
    call = _call(model, images, unseen=2)
    unseen = {call.session_data.names[c] for c in call.session_data.unseen}
    assert len(unseen) == 2
    assert not set(call.session_data.new) & set(call.session_data.unseen)
    state = _learn(model, images, unseen=2)
    assert {stored.name for stored in state.record.of_kind("unseen")} == unseen
    assert len(state.recogniser().names) == 10
    assert state.history[-1].measured.unseen is not None  # type: ignore[union-attr]
    assert len(_call(model, write_classes("second", {"x": 11, "y": 12})).session_data.unseen) == 0


def test_a_class_that_came_before_is_refused_or_merged(model, write_classes):
    _learn(model, write_classes("first", {"a": 0, "b": 1}), keep=10)
    again = write_classes("again", {"a": 2, "c": 3})
    with pytest.raises(InputError, match=r'"a" came before: rename it .* say --existing merge'):
        _call(model, again)
    call = _call(model, again, existing="merge")
    numbers = {name: i for i, name in enumerate(call.session_data.names)}
    assert list(call.session_data.past) == [numbers["b"]]
    assert len(call.session_data.new[numbers["a"]]) == 8 + 12  # exemplars, and all new images: two are held out already
    state = _learn(model, again, existing="merge")
    assert _kept(state) == dict.fromkeys("abc", (8, 2))


def test_a_merged_class_neither_trains_on_held_out_images_nor_doubles_exemplars(model, write_classes, glyphs):
    state = _learn(model, write_classes("first", {"a": 0, "b": 1}, count=8), keep=10)
    again = write_classes("again", {"a": 0, "b": 1})  # the same eight drawings of each, and four more
    session_data = _call(model, again, existing="merge").session_data
    vault = ModelFolder(model).vault
    for stored in state.classes:
        rows = session_data.new[session_data.names.index(stored.name)]
        trained = [pixels(session_data.images[row], 16).tobytes() for row in rows]
        aside = {square.tobytes() for square in vault.load(stored.held_out, 16)}
        assert len(aside) == 2
        assert not aside & set(trained)
        assert len(set(trained)) == len(trained) == 6 + 4
    call = _call(model, again, existing="merge")
    _spoil(call)
    with pytest.raises(InputError, match=r"1 of \d+ images cannot be read: .*\.png"):
        _learn_call(call, model)


def test_a_remembered_image_that_comes_again_is_still_one_image(model, write_classes, glyphs):
    _learn(model, write_classes("first", {"a": 0, "b": 1}))
    ModelFolder(model).remember({"r": [glyphs[5, 0]]})
    with pytest.raises(InputError, match='"r" has fewer than 2 images that are not held out'):
        _call(model, write_classes("again", {"r": 5}, count=1), existing="merge")


def test_one_new_class_is_learned_against_the_past(model, write_classes):
    _learn(model, write_classes("first", {"a": 0, "b": 1, "c": 2}), method="erd")
    call = _call(model, write_classes("second", {"d": 3}))
    assert (call.config.shape.way, round(call.config.method.p * call.config.shape.way)) == (4, 3)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="method ft trains on the new classes alone"):
        _call(model, write_classes("third", {"e": 4}), method="ft")


def test_a_model_can_go_on_where_all_or_all_but_one_of_its_classes_were_forgotten(model, write_classes):
    _learn(model, write_classes("first", {"a": 0, "b": 1}))
    ModelFolder(model).forget("a")
    assert "b" in _kept(_learn(model, write_classes("second", {"c": 2, "d": 3})))
    for name in "bcd":
        ModelFolder(model).forget(name)
    assert list(_kept(_learn(model, write_classes("third", {"e": 2, "f": 3})))) == ["e", "f"]


def test_another_models_weights_can_be_the_start(model, write_classes, tmp_path):
    images = write_classes("first", {"a": 0, "b": 1})
    origin = _learn(model, images)
    call = plan_call(
        ModelFolder(tmp_path / "other"), read_classes(images).classes, LearnOptions(overrides=LATER), ModelFolder(model)
    )
    assert isinstance(call, Call)
    assert call.start.keys() == origin.weights.keys()
    assert call.config.image_size == 16
    with pytest.raises(InputError, match="to start from is for a new model"):
        _call(model, write_classes("second", {"c": 2}), base=ModelFolder(model))


def _notices(model: Path, call: Call, *, interrupted: bool = False) -> list[str]:
    """What a call tells, which is stopped at its first step or runs to its end."""
    folder, received = ModelFolder(model), []
    with folder.writing(), pytest.raises(Interrupted) if interrupted else nullcontext():
        learn(folder, call, received.append, stop=lambda: interrupted)
    return [event["text"] for event in received if event["event"] == "notice"]


def test_remembering_keeps_the_work_of_an_interrupted_call(model, write_classes, glyphs):
    _learn(model, write_classes("first", {"a": 0, "b": 1, "c": 2}))
    second = write_classes("second", {"d": 3, "e": 4})
    _notices(model, _call(model, second), interrupted=True)
    ModelFolder(model).remember({"r": list(glyphs[5, :2])})
    assert _notices(model, _call(model, second)) == ["continuing the call that was interrupted"]
    assert set(ModelFolder(model).state().record.names) == set("abcdre")


def test_work_that_began_with_other_weights_is_dropped(model, write_classes, tmp_path):
    images, other, new = write_classes("first", {"a": 0, "b": 1}), tmp_path / "other", tmp_path / "new"
    _learn(model, images)
    _learn(other, images, overrides={"seed": 7})

    def began_with(base: Path) -> list[str]:
        options = LearnOptions(epochs=1, overrides=LATER)
        call = plan_call(ModelFolder(new), read_classes(images).classes, options, ModelFolder(base))
        assert isinstance(call, Call)
        return _notices(new, call, interrupted=True)

    assert began_with(model) == []
    assert began_with(model) == ["continuing the call that was interrupted"]
    assert began_with(other) == ["another call was interrupted before: its work is dropped"]


def test_images_that_are_spoiled_meanwhile_are_named_and_leave_nothing_to_continue(model, write_classes):
    call = _call(model, write_classes("first", {"a": 0, "b": 1}))
    _spoil(call)
    with pytest.raises(InputError, match=r"1 of 24 images cannot be read: .*\.png"):
        _learn_call(call, model)
    assert not ModelFolder(model).work.exists()


@pytest.mark.parametrize("which", ["images", "held_out"])
def test_a_damaged_image_of_the_model_is_refused_before_the_training(model, write_classes, which):
    state = _learn(model, write_classes("first", {"a": 0, "b": 1}))
    digest = getattr(state.classes[0], which)[0]
    Image.new("RGB", (16, 16)).save(ModelFolder(model).vault.path(digest))
    with pytest.raises(InputError, match="missing or damaged: restore"):
        _call(model, write_classes("second", {"c": 2}))


def test_the_same_image_twice_keeps_its_distances_in_step(model, write_classes, glyphs):
    images = write_classes("first", {"a": 0, "b": 1})
    for i in range(6):
        shutil.copy(images / "a" / "0.png", images / "a" / f"again{i}.png")
    _learn(model, images, overrides={"memory.select": "herding"})
    for stored in ModelFolder(model).state().classes:
        assert stored.distances is not None
        assert len(stored.distances) == len(stored.images)


def test_fine_tuning_neither_replays_nor_distils(model, write_classes):
    _learn(model, write_classes("first", {"a": 0, "b": 1}), method="ft")
    method = _call(model, write_classes("second", {"c": 2, "d": 3}), method="ft").config.method
    assert (method.p, method.lambda_m, method.lambda_e) == (0, 0, 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 3, "budget": 9}, "give one of them"),
        ({"keep": 1}, "at least 2"),
        ({"budget": 5}, "raise it to at least 6"),
        ({"unseen": 1}, "hold out none or at least 2"),
        ({"overrides": RELATIONS}, "use learner.name: protonet"),
        ({"overrides": RELATIONS, "method": "erd"}, "use protonet"),
        ({"overrides": {"train.lr": 0.5, "train.bn": "split"}}, r"train\.lr.*train\.bn do nothing for method nrd"),
        ({"overrides": {"method.lambda_m": 0.1}}, r"no such field of method nrd, but of .*erd"),
        ({"overrides": {"method.name": "ida"}}, "choose the method with the option method"),
        ({"overrides": {"stream.tasks": 2}}, "one task a call"),
        ({"overrides": {"memory.per_class": 2}}, "use the option keep"),
        ({"overrides": {"shape.wya": 2}}, 'did you mean "shape.way"'),
        ({"overrides": {"shape.way": "many"}}, "shape.way"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(options, message, model, write_classes):
    with pytest.raises(InputError, match=message):
        _call(model, write_classes("first", {"a": 0, "b": 1, "c": 2}), **options)
    assert not model.exists()


@pytest.mark.parametrize("overrides", [{"method.p": 0.5}, {"method.p": 0.5, "shape.way": 4}, {"shape.shots": 30}])
def test_what_depends_on_images_or_model_is_not_refused_without_them(overrides):
    assert check_overrides(LearnOptions(overrides=overrides, method="erd"), first=True).device == "auto"
    assert check_overrides(LearnOptions(overrides={"backbone.drop": 0.1}), first=False)  # of another backbone


@pytest.mark.parametrize(("overrides", "other"), [({"method.lambda_m": 0.1}, "nrd"), ({"method.turned": 0.5}, "erd")])
def test_what_a_method_has_is_not_refused_before_the_method_of_the_model_is_known(overrides, other):
    assert check_overrides(LearnOptions(overrides=overrides), first=False).device == "auto"
    with pytest.raises(InputError, match=f"no such field of method {other}"):
        check_overrides(LearnOptions(overrides=overrides, method=other), first=False)


def test_what_the_first_call_decided_stays(model, write_classes):
    _learn(model, write_classes("first", {"a": 0, "b": 1}))
    with pytest.raises(InputError, match="decided when the model was made"):
        _call(model, write_classes("second", {"c": 2, "d": 3}), overrides={"backbone.width": "released"})
    with pytest.raises(InputError, match=r"data\.size was decided when the model was made"):
        _call(model, write_classes("third", {"c": 2, "d": 3}), overrides={"data.size": 32})
    again = {"data.size": 16, "augment.scale": (0.08, 1.0), "backbone.name": "conv4"}  # said again, not changed
    assert _call(model, write_classes("fourth", {"c": 2, "d": 3}), overrides=again).config.image_size == 16


def test_the_farthest_exemplar_cannot_be_dropped_where_distances_were_not_kept(model, write_classes):
    _learn(model, write_classes("first", {"a": 0, "b": 1}), budget=20, overrides={"memory.select": "random"})
    second = write_classes("second", {"c": 2, "d": 3})
    with pytest.raises(InputError, match=r'farthest: "a", "b" came with .*random.*: leave memory\.drop out'):
        _call(model, second, overrides={"memory.drop": "farthest"})
    assert _call(model, second, keep=5, overrides={"memory.drop": "farthest"})  # nothing is dropped
    again = write_classes("again", {"a": 0, "b": 1, "c": 2})  # with exemplars that are chosen anew
    assert _call(model, again, existing="merge", overrides={"memory.drop": "farthest"})


def test_too_few_images_or_classes_are_refused(model, write_classes, tmp_path):
    with pytest.raises(InputError, match=r'"a", "b" has fewer than 2 images.*use `remember`'):
        _call(model, write_classes("first", {"a": 0, "b": 1}, count=1))
    with pytest.raises(InputError, match="telling apart takes two"):
        _call(model, write_classes("one", {"a": 0}))
    with pytest.raises(InputError, match="has no sub-folder with images"):
        read_classes(tmp_path / "first" / "a")


def test_a_class_too_small_for_the_episodes_is_known_by_its_mean(model, write_classes):
    images = write_classes("first", {"a": 0, "b": 1})
    alone = _call(model, images)
    write_classes("first", {"tiny": 2}, count=2)
    call = _call(model, images)
    assert call.config.shape == alone.config.shape  # as without it
    assert summary(call)["too_few_images"] == {"tiny": 2}
    assert "tiny (2): not trained on, known by the mean" in dict(intention(call))["too few"]
    state = _learn(model, images)
    assert [(stored.name, stored.kind) for stored in state.classes][-1] == ("tiny", "remembered")
    assert len(state.recogniser().names) == 3
    with pytest.raises(InputError, match='"tiny" came before'):
        _call(model, write_classes("again", {"tiny": 2, "c": 3}))


@pytest.mark.parametrize(
    ("counts", "few"),
    [
        ({"a": 35, "b": 35, "c": 3}, {"c"}),
        ({"a": 800, "b": 35, "c": 9, "d": 10}, {"c"}),
        ({"a": 9, "b": 9, "c": 9}, set()),
        ({"a": 8, "b": 8, "c": 4, "d": 2}, {"d"}),
        ({"a": 800, "b": 3}, set()),  # one class alone is nothing to train on
        ({}, set()),
    ],
)
def test_which_classes_are_too_small(counts, few):
    assert too_few(counts, LearnOptions(), least=2) == few


def test_names_are_what_people_type_however_a_system_writes_accents(write_classes):
    assert list(read_classes(write_classes("first", {"cafe\u0301": 0})).classes) == ["caf\u00e9"]


@pytest.mark.parametrize(("side", "size"), [(8, 32), (32, 32), (45, 48), (64, 64), (300, 84)])
def test_the_image_size_follows_from_the_images(side, size):
    array = np.zeros((side, 2 * side, 3), np.uint8)
    picture, file = Image.fromarray(array), BytesIO()
    picture.save(file, "PNG")
    for image in (array, picture, file.getvalue(), memoryview(file.getvalue())):
        assert fitting_size([image]) == size
    assert fitting_size([b"no image", array]) == size


def test_the_size_is_taken_from_images_of_the_kinds_that_are_read(tmp_path):
    """Headers of other kinds are not parsed at all, nor does a damaged one matter."""
    for name, kind in (("small.jpg", "PPM"), ("large.png", "PNG")):
        Image.new("RGB", (32, 32) if kind == "PPM" else (84, 90)).save(tmp_path / name, kind)
    torn = b"II*\0\x08\0\0\0\xff\xff"  # a TIFF that ends where its tags should begin
    assert fitting_size([tmp_path / "small.jpg", tmp_path / "large.png"]) == 84
    assert fitting_size([torn, (tmp_path / "small.jpg").read_bytes(), tmp_path / "large.png"]) == 84


@pytest.mark.parametrize(("images", "available", "held_out"), [(20, 100, 4), (20, 5, 1), (20, 3, 0), (2, 100, 0)])
def test_a_few_images_are_held_out(images, available, held_out):
    assert Share(images).held_out_of(available) == held_out


def test_a_new_model_is_trained_by_nrd_and_goes_on_by_it(model, write_classes):
    _learn(model, write_classes("first", {"a": 0, "b": 1}))
    call = _call(model, write_classes("second", {"c": 2, "d": 3}), overrides={"method.turned": 0.5})
    assert (call.options.method, call.config.method.name) == ("nrd", "nrd")
    said = dict(intention(call))
    assert (said["with"], said["method"]) == ("18 exemplars of earlier classes", "nrd (--method)")
    assert said["a step"].startswith(f"{call.config.training_shape.images} images and as many exemplars")


@pytest.mark.parametrize(
    ("backbone", "method"),
    [
        ("conv4", "nrd"),
        ("resnet12", "nrd"),
        ("efficientnet_lite", "erd"),
        ("hub", "erd"),
        ("package.module:Net", "erd"),
    ],
)
def test_encoders_that_may_have_been_trained_before_are_trained_on_by_erd(backbone, method):
    options = LearnOptions(overrides={"backbone.name": backbone})
    assert options.with_method_of(None).method == method
    assert LearnOptions(method="nrd", overrides=options.overrides).with_method_of(None).method == "nrd"


def test_upright_images_alone_are_learned_where_nothing_else_is_asked_for(model, write_classes):
    """A letter that is turned may be another letter."""
    images = write_classes("first", {"a": 0, "b": 1})
    turned = [_call(model, images, overrides=given).config.method.turned for given in ({}, {"method.turned": 0.5})]  # type: ignore[attr-defined]
    assert turned == [0, 0.5]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("second", [{"c": 2}, {"c": 2, "d": 3}])
def test_two_images_of_a_class_and_two_exemplars_are_enough(model, write_classes, second, count):
    state = _learn(model, write_classes("first", {"a": 0, "b": 1}, count=count), keep=2)
    assert _kept(state) == dict.fromkeys("ab", (2, 0))
    state = _learn(model, write_classes("second", second, count=count))
    assert _kept(state) == dict.fromkeys(["a", "b", *second], (2, 0))


def test_turned_classes_of_one_call_bind_no_other(model, write_classes):
    """The classifier of a session is none of the model's weights: it begins at the class means in every call."""
    _learn(model, write_classes("first", {"a": 0, "b": 1}), overrides={"method.turned": 0.5})
    weights = _learn(model, write_classes("second", {"c": 2, "d": 3})).weights
    assert all(name.startswith("learner.") for name in weights)
    assert _learn(model, write_classes("third", {"e": 4}), overrides={"method.turned": 1}).record.sessions == 3


def test_the_same_call_gives_the_same_weights(write_classes, tmp_path):
    images = write_classes("first", {"a": 0, "b": 1}), write_classes("second", {"c": 2})
    made = [[_learn(tmp_path / name, folder) for folder in images][-1] for name in ("one", "other")]
    assert weights_digest(made[0].weights) == weights_digest(made[1].weights)


@pytest.mark.parametrize("second", [{"c": 2}, {"c": 2, "d": 3}])
def test_a_model_that_compares_by_direction_stays_so(model, write_classes, second):
    _learn(model, write_classes("first", {"a": 0, "b": 1}), method="nrd")
    state = _learn(model, write_classes("second", second))
    assert state.config.method.name == "nrd"
    found = state.recogniser()
    vectors = found.embed(np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), np.uint8))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert found.probabilities(vectors).shape == (3, 2 + len(second))
    third = write_classes("third", {"e": 4, "f": 5})
    for other in ("erd", "ft"):
        with pytest.raises(InputError, match=r"made with nrd.*by direction"):
            _call(model, third, method=other)


def test_a_model_that_compares_points_stays_so(model, write_classes):
    _learn(model, write_classes("first", {"a": 0, "b": 1}), method="erd")
    state = _learn(model, write_classes("more", {"e": 4}), overrides={"method.lambda_m": 0.1, "train.lr": 0.01})
    assert (state.config.method.name, state.config.normalised) == ("erd", False)
    with pytest.raises(InputError, match=r"made with erd.*as points"):
        _call(model, write_classes("second", {"c": 2, "d": 3}), method="nrd")
