"""A run that was stopped or killed and then continued ends with the bits of one that was left alone."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.tiny import EPISODE, RUNNABLE, SESSIONS, STEPS, outcome, tiny
from episodica.config import RunConfig
from episodica.engine import trainer
from episodica.engine.forward import Forward
from episodica.engine.run import run_one
from episodica.errors import Interrupted
from episodica.models.conv4 import Conv4
from episodica.models.random_layers import DropBlock, Dropout

Run = Callable[[RunConfig], Path]

UNAUGMENTED = {"augment.crop": "none", "augment.flip": False} | {
    f"augment.{jitter}": 0 for jitter in ("brightness", "contrast", "colour")
}
VARIANTS: dict[str, Mapping[str, Any]] = {
    "old embeddings cached": {**UNAUGMENTED, "train.epochs": 3},
    "bank of views": {"augment.views": 2, "train.epochs": 3, "data.per_class": 22},
    "tuning of podnet": {"method.name": "podnet", "method.tuning": 0.5, "method.batch": EPISODE},
    "exemplars in eiml": {
        "method.name": "eiml",
        "method.exemplars_in_distillation": True,
        "method.exemplars_in_meta_loss": True,
        "method.sample": 3,
    },
    "released code": {"method.cross": "released", "train.bn": "released", "method.kl_clamp": 1e-4},
    "shared memory": {"memory.per_class": None, "memory.total": 20, "memory.select": "rb"},
    "fused kernels": {"kernels": "auto", "seed": 1},
    "several shapes": {"eval.shots": [1, 2], "eval.way": [2, 5], "train.episodes_per_step": 2},
}
every_config = pytest.mark.parametrize(
    "config",
    [pytest.param(tiny(method=m, learner=k), id=f"{m}-{k}") for m, k in RUNNABLE]
    + [pytest.param(tiny(overrides), id=name) for name, overrides in VARIANTS.items()],
)


@every_config
def test_stopping_at_the_first_and_last_step_and_in_the_evaluation_of_every_session_changes_nothing(
    config: RunConfig, plain: Run, tmp_path: Path
) -> None:
    stopped: set[tuple[int, str, int]] = set()
    event: dict[str, Any] = {}

    def stop() -> bool:
        """At each of these places until it has led to an interruption."""
        return event["step"] in (1, event["steps"]) and place() not in stopped

    def place() -> tuple[int, str, int]:
        return event["session"], event["event"], event["step"]

    for _ in range(100):
        try:
            run_one(config, tmp_path, event.update, stop)
            break
        except Interrupted:
            stopped.add(place())
    assert len(stopped) == 3 * (1 if config.is_bound else SESSIONS)
    assert outcome(tmp_path / config.run_id) == outcome(plain(config))


@pytest.mark.parametrize("name", ["old embeddings cached", "bank of views"])
def test_the_variants_that_are_about_kept_embeddings_keep_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []

    class Observed(Forward):
        def __init__(self, *parts: Any, cache: bool, **options: Any) -> None:
            kept.append(cache)
            super().__init__(*parts, cache=cache, **options)

    monkeypatch.setattr(trainer, "Forward", Observed)
    run_one(tiny(VARIANTS[name]), tmp_path, lambda event: None)
    assert kept == [False, *[True] * (SESSIONS - 1)]  # the first session has no old model


def test_random_layers_of_a_backbone_draw_the_same_after_a_stop(scratch_registry: None, tmp_path: Path) -> None:
    class Noisy(Conv4, name="noisy"):
        def __post_init__(self) -> None:
            super().__post_init__()
            self.blocks.append(Dropout(0.3)).append(DropBlock(0.3, 2, 0))

    config, event, stopped = tiny(backbone="noisy"), {}, set()

    def stop() -> bool:
        place = (event["session"], event["event"], event["step"])
        return not (place in stopped or stopped.add(place))

    run_one(config, tmp_path / "whole", lambda event: None)
    for _ in range(100):
        try:
            run_one(config, tmp_path / "parts", event.update, stop)
            break
        except Interrupted:
            continue
    assert len(stopped) > SESSIONS * STEPS
    assert outcome(tmp_path / "parts" / config.run_id) == outcome(tmp_path / "whole" / config.run_id)


@every_config
def test_crashing_anywhere_changes_nothing(config: RunConfig, plain: Run, tmp_path: Path) -> None:
    """Each attempt survives one event more than the one before it; every second one saves after each step."""
    for attempt in range(100):
        saving = {"checkpoint_seconds": 0 if attempt % 2 else 1e6}
        crashing = config.model_copy(update={"train": config.train.model_copy(update=saving)})
        try:
            run_one(crashing, tmp_path, CrashAfter(attempt))
            break
        except Crash:
            continue
    assert outcome(tmp_path / config.run_id) == outcome(plain(config))


class Crash(Exception):
    pass


class CrashAfter:
    def __init__(self, events: int) -> None:
        self.left = events

    def __call__(self, event: Mapping[str, Any]) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash


def test_a_finished_run_is_read_and_not_trained_again(plain: Run) -> None:
    config = tiny()
    folder = plain(config)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}
    events: list[str] = []
    results = run_one(config, folder.parent, lambda event: events.append(event["event"]))
    assert events == ["found"]
    assert results.status == "finished"
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}


def test_a_stopped_run_says_so_in_its_results(tmp_path: Path) -> None:
    config = tiny()
    with pytest.raises(Interrupted):
        run_one(config, tmp_path, lambda event: None, lambda: True)
    assert '"status": "interrupted"' in (tmp_path / config.run_id / "results.json").read_text()
