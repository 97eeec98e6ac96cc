"""Earlier blocks of a frozen encoder: looked at where that is better on held-out images and on unseen classes."""

from collections.abc import Iterator
from dataclasses import field

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from episodica import registry
from episodica.classifier import adapter_training
from episodica.classifier.adaptation import LEAST, Paired, compared, in_words
from episodica.classifier.adapter import PointAdapter, unfit
from episodica.classifier.exact_adapt import adapt
from episodica.classifier.exact_state import ExactState
from episodica.classifier.few_shot import FewShotClassifier
from episodica.classifier.in_depth import LEFT_OUT, learn_in_depth
from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import LearnOptions
from episodica.classifier.plan import plan_call
from episodica.classifier.summaries import intention
from episodica.config import resolution
from episodica.errors import InputError, Interrupted
from episodica.learners.statistics import UNIT, points
from episodica.models.backbone import Backbone
from episodica.rng import generator

SIDE, CHANNELS, PER_CLASS = 16, 6, 6
NAMES = "abcdefghi"


@pytest.fixture(scope="module", autouse=True)
def colourful() -> Iterator[None]:
    """An encoder of four blocks whose last one sees brightness alone, or all that the third one sees."""
    known = registry.components("backbone")

    class Colourful(Backbone, name="colourful"):
        """Colours, of which the last block may leave the sum."""

        train_: str = "none"  # type: ignore[assignment]
        blind: bool = True
        blocks: nn.Sequential = field(init=False)

        def __post_init__(self) -> None:
            same = torch.eye(CHANNELS)
            weights = [same[:, :3] - same[:, 3:], same, same, torch.ones_like(same) if self.blind else same]
            convolutions = [nn.Conv2d(w.shape[1], CHANNELS, 1, bias=False) for w in weights]
            with torch.no_grad():
                for convolution, weight in zip(convolutions, weights, strict=True):
                    convolution.weight.copy_(weight[:, :, None, None])
            self.blocks = nn.Sequential(*convolutions)

        @property
        def input_size(self) -> int:
            return SIDE

        def map_shape(self, size: int) -> tuple[int, int, int]:
            return CHANNELS, size, size

        def out_shape(self, size: int) -> tuple[int, ...]:
            return (CHANNELS,)

        def pool(self, maps: Tensor) -> Tensor:
            return maps.mean((2, 3))

    resolution._know_all_components.cache_clear()
    yield
    registry._components["backbone"] = dict(known)
    resolution._know_all_components.cache_clear()


@pytest.fixture(autouse=True)
def short(monkeypatch) -> None:
    monkeypatch.setattr(adapter_training, "STEPS", 20)


def pictures(name: str) -> list[np.ndarray]:
    """Of one colour each, which is nearly that of the class."""
    g = generator("colours", name)
    colours = torch.rand(3, generator=g) + 0.05 * torch.rand(PER_CLASS, 3, generator=g)
    return [np.full((SIDE, SIDE, 3), (200 * colour).byte().numpy(), np.uint8) for colour in colours]


def teach(folder: ModelFolder, names: str, said: list[str], *, blind: bool = True, **options) -> ExactState:
    overrides = {} if folder.exists else {"backbone.name": "colourful", "backbone.blind": blind}
    with folder.writing():
        call = plan_call(folder, {c: pictures(c) for c in names}, LearnOptions(overrides=overrides, **options))
        state = learn(folder, call, lambda event: said.append(event["text"]) if event["event"] == "notice" else None)
    assert isinstance(state, ExactState)
    return state


@pytest.mark.parametrize(("blind", "depths", "width"), [(True, 2, 2 * CHANNELS), (False, 1, CHANNELS)])
def test_auto_keeps_what_is_better(tmp_path, blind, depths, width):
    folder, said = ModelFolder(tmp_path / "model"), []
    state = teach(folder, NAMES, said, blind=blind, adapt="auto")
    assert state.record.encoder.depths == depths
    assert state.statistics.width == width
    text, adapter = said
    assert "the last 2 blocks" in text
    assert ("; kept." in text) == blind
    assert "an adapter trained over the encoder: held-out images" in adapter
    teach(folder, "x", said)  # at which blocks it looks is not decided again, whether an adapter helps is
    assert folder.state().record.encoder.depths == depths  # type: ignore[attr-defined]
    assert len(said) == 3


def test_what_is_not_kept_leaves_the_model_that_never_tried(tmp_path):
    tried, never = ModelFolder(tmp_path / "tried"), ModelFolder(tmp_path / "never")
    one = teach(tried, NAMES, [], blind=False, adapt="auto")
    other = teach(never, NAMES, [], blind=False)
    assert one.files() == other.files()
    assert not one.has_adapter


def test_a_class_that_is_forgotten_was_never_there(tmp_path):
    with_it, never = ModelFolder(tmp_path / "with"), ModelFolder(tmp_path / "never")
    teach(with_it, NAMES, [], adapt="auto")
    with_it.forget("d")
    state = teach(never, NAMES.replace("d", ""), [], adapt="auto")
    assert with_it.state().files() == state.files()
    assert state.record.encoder.depths == 2


def test_too_few_classes_are_not_tried(tmp_path):
    said: list[str] = []
    state = teach(ModelFolder(tmp_path / "model"), NAMES[: LEAST - 1], said, adapt="auto")
    assert state.record.encoder.depths == 1
    assert f"it takes {LEAST} classes" in said[0]


def test_it_is_shown_and_refused_where_a_network_is_trained(tmp_path):
    images = {c: pictures(c) for c in "ab"}
    call = plan_call(
        ModelFolder(tmp_path / "model"), images, LearnOptions(adapt="yes", overrides={"backbone.name": "colourful"})
    )
    assert dict(intention(call))["adapt"] == "an adapter is trained over the encoder"
    with pytest.raises(InputError, match="--adapt auto is about a frozen encoder"):
        plan_call(ModelFolder(tmp_path / "other"), images, LearnOptions(adapt="auto"))


def test_the_estimator_takes_it_with_every_call():
    model = FewShotClassifier(adapt="auto", settings={"backbone.name": "colourful"})
    images = {c: pictures(c) for c in NAMES}
    for part in (NAMES[:7], NAMES[7:]):
        model.partial_fit([image for c in part for image in images[c]], [c for c in part for _ in images[c]])
    assert model.state_.record.encoder.depths == 2  # type: ignore[attr-defined]
    assert model.score([image for c in NAMES for image in images[c]], [c for c in NAMES for _ in images[c]]) > 0.9


def embedded(noise: float) -> dict[str, np.ndarray]:
    g = generator("embedded", int(10 * noise))
    centres = torch.eye(12)[:9]
    return {
        c: points((centre + noise * torch.randn(8, 12, generator=g)).numpy())
        for c, centre in zip(NAMES, centres, strict=True)
    }


def test_better_is_better_in_both_and_beyond_chance():
    clear, vague = embedded(0.1), embedded(2.0)
    found = compared(vague, clear)
    assert found is not None
    assert found.better
    assert found.held_out.after == found.unseen.after == 1
    for before, after in ((clear, vague), (clear, clear)):
        found = compared(before, after)
        assert found is not None
        assert not found.better
        assert "not kept" in in_words(found, "it")
    assert compared({c: p[:1] for c, p in vague.items()}, {c: p[:1] for c, p in clear.items()}) is None


def test_intervals_are_those_of_paired_answers():
    before, after = np.array([1, 0, 0, 0, 1, 0]), np.array([1, 1, 1, 0, 1, 1])
    found = Paired.of(before, after)
    gains = np.array([0, 1, 1, 0, 0, 1])
    assert found.interval == pytest.approx(1.96 * gains.std(ddof=1) / 6**0.5)
    assert str(found) == "33.3 to 83.3 % (+50.0 ± 43.8 points)"
    assert found.better


def test_yes_trains_an_adapter_and_goes_on_with_every_call(tmp_path):
    folder = ModelFolder(tmp_path / "model")
    first = teach(folder, NAMES[:5], [], adapt="yes", blind=False)
    assert first.has_adapter
    assert first.record.encoder.depths == 1
    raw = first.statistics.classes["a"]
    second = teach(folder, NAMES[5:], [])
    assert second.record.encoder.adapter not in (None, first.record.encoder.adapter)
    assert np.array_equal(second.statistics.classes["a"], raw)  # what is kept are points as the encoder gave them
    assert not np.array_equal(second.adapted(second.statistics).classes["a"], raw)
    assert folder.undo().record.encoder.adapter == first.record.encoder.adapter  # type: ignore[attr-defined]
    assert len(folder.encoders.folder.entries()) == 2  # the encoder and its adapter
    state, trained, gone = folder.forget("b")  # which the adapter has seen
    assert (trained, gone, len(folder.encoders.folder.entries())) == (False, True, 1)
    never = teach(ModelFolder(tmp_path / "never"), NAMES[:5].replace("b", ""), [], blind=False)
    assert state is not None
    assert state.files() == never.files()
    assert state.history[-1].measured == never.history[-1].measured
    assert not (tmp_path / "model" / "work").exists()


def test_in_depth_looks_again_at_what_is_kept_and_says_what_it_leaves_out(tmp_path, monkeypatch):
    monkeypatch.setattr(adapter_training, "STEPS", 4)
    folder, said, who = ModelFolder(tmp_path / "model"), [], "Anna"
    teach(folder, NAMES, said, adapt="yes", keep=PER_CLASS)

    def on_event(event):
        said.append(event["text"]) if event["event"] == "notice" else None

    state = learn_in_depth(folder, on_event, who=who)
    assert isinstance(state, ExactState)
    assert state.record.encoder.depths == 2  # it is blind in the last block alone
    assert "; kept." in said[0]
    assert (said[-1] == LEFT_OUT) == (not state.has_adapter)
    assert [(line.what, line.who) for line in folder.changes()][-1] == ("adapt", who)
    assert folder.undo().record.encoder.depths == 1  # type: ignore[attr-defined]
    with pytest.raises(Interrupted):
        learn_in_depth(folder, on_event, lambda: True)


def test_a_training_that_is_stopped_leaves_the_model_as_it_was(tmp_path):
    folder, events = ModelFolder(tmp_path / "model"), []
    teach(folder, NAMES, [])
    before = folder.version()
    with pytest.raises(Interrupted):
        adapt(folder, "yes", events.append, lambda: len(events) > 2)
    assert folder.version() == before
    assert {"event": "step", "step": 10, "steps": 4 * 20}.items() <= events[1].items()
    adapt(folder, "auto", events.append)
    assert folder.version() != before
    assert any("an adapter trained over" in event.get("text", "") for event in events)


def test_an_adapter_turns_points_as_the_equation_says():
    rng = np.random.default_rng(0)
    some, change = points(rng.normal(size=(5, 12))), (0.1 * rng.normal(size=(12, 12))).astype(np.float16)
    for point, found in zip(some, PointAdapter(change)(some), strict=True):
        x = point * UNIT
        expected = x + change.astype(float) @ x
        assert np.allclose(found * UNIT, expected / np.linalg.norm(expected), atol=1e-4)
    assert unfit(change, 12) is None
    assert unfit(change, 13)
    assert unfit(change * np.float16("nan"), 12)
