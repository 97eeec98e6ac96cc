"""What every method must do with every learner: found through the registry, so that new components are covered."""

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from safetensors.torch import load_file

from conformance.conftest import Observation
from conformance.tiny import (
    COMPLETE_BACKBONES,
    PAIRS,
    RUNNABLE,
    SESSIONS,
    STEPS,
    TINY,
    every_pair,
    losses,
    refusal,
    tensors_digest,
    tiny,
)
from episodica.config import RunConfig, resolve
from episodica.engine.experiment import load_experiment, new_learner
from episodica.engine.run import load_learner, run_one
from episodica.learners.learner import Learner
from episodica.learners.relationnet import RelationNet
from episodica.methods.erd import ERD
from episodica.models.resnet12 import CHANNELS
from episodica.registry import components, find
from episodica.types import Pool, Shape

Observe = Callable[[str, str], Observation]
Run = Callable[[RunConfig], Path]


@pytest.mark.parametrize(("method", "learner"), PAIRS)
def test_every_combination_can_be_planned_or_is_refused_with_a_reason(method: str, learner: str) -> None:
    reason = refusal(method, learner)
    assert reason is None or (reason.startswith((f"method {method}: ", "eval.centroids: ")) and len(reason) > 30)


def test_a_learner_whose_embeddings_are_points_works_with_every_method() -> None:
    refused = {learner for _, learner in set(PAIRS) - set(RUNNABLE)}
    assert not any(find("learner", learner).vectors for learner in refused)  # type: ignore[attr-defined]


def test_every_method_works_with_some_learner_and_every_learner_with_some_method() -> None:
    assert {method for method, _ in RUNNABLE} == set(components("method"))
    assert {learner for _, learner in RUNNABLE} == set(components("learner"))


@every_pair
def test_loss_terms_are_named_and_finite_in_every_step(method: str, learner: str, observed: Observe) -> None:
    steps = observed(method, learner).steps
    assert len(steps) == SESSIONS * STEPS
    assert all(step.terms and all(map(math.isfinite, step.terms.values())) for step in steps)


@every_pair
def test_the_log_holds_the_terms_of_every_step(method: str, learner: str, observed: Observe) -> None:
    found = observed(method, learner)
    logged = [loss for session in range(1, SESSIONS + 1) for loss in losses(found.folder, session)]
    assert logged == [step.terms for step in found.steps]


@every_pair
def test_gradients_reach_the_whole_backbone(method: str, learner: str, observed: Observe) -> None:
    steps = observed(method, learner).steps
    for session in {step.session for step in steps}:
        first = next(step for step in steps if step.session == session)
        for name, gradient in first.gradients.items():
            assert gradient is not None, name
            assert gradient.isfinite().all(), name
            assert gradient.ndim < 2 or gradient.any(), name


@every_pair
def test_the_old_model_is_that_of_the_previous_session_and_stays_so(
    method: str, learner: str, observed: Observe
) -> None:
    found = observed(method, learner)
    for step in found.steps:
        assert step.teacher_is_frozen
        assert not step.old_has_gradient
        assert step.teacher == (None if step.session == 1 else _learner_after(found.folder, step.session - 1))


def _learner_after(folder: Path, session: int) -> str:
    tensors = load_file(folder / f"checkpoints/{session:03d}-end.safetensors")
    return tensors_digest({n.removeprefix("learner."): t for n, t in tensors.items() if n.startswith("learner.")})


@every_pair
def test_only_the_current_task_and_the_memory_are_read_until_evaluation(
    method: str, learner: str, observed: Observe
) -> None:
    found = observed(method, learner)
    stream = load_experiment(found.config).stream
    replays = found.config.replays
    current: set[int] = set()
    past: set[int] = set()
    evaluated: set[int] = set()
    read: set[int] = set()
    for event in found.log:
        if event["event"] == "read":
            read |= event["rows"]
            assert read <= current | past | evaluated
        elif event["event"] == "session":
            current, past = (
                rows_of(stream.train[event["session"] - 1]),
                {r for k in event["exemplars"].values() for r in k},
            )
            evaluated, read = set(), set()
            assert past <= {row for pool in stream.train[: event["session"] - 1] for row in rows_of(pool)}
            assert bool(past) == (replays and event["session"] > 1)
        elif event["event"] == "step" and event["step"] == event["steps"]:
            assert read & current
            assert bool(read & past) == bool(past)
            evaluated = rows_of(stream.unseen).union(
                *(rows_of(stream.test[t]) for t in stream.seen(event["session"] - 1))
            )
        elif event["event"] == "result":
            assert read >= evaluated


def rows_of(pool: Pool) -> set[int]:
    return set(pool.images().tolist())


@every_pair
def test_exemplars_stay_as_chosen_and_within_the_budget(method: str, learner: str, observed: Observe) -> None:
    found = observed(method, learner)
    kept = [event["exemplars"] for event in found.log if event["event"] == "session"]
    kept.append(
        {int(c): k["rows"] for c, k in json.loads((found.folder / "exemplars.json").read_text())["classes"].items()}
    )
    for before, after in pairwise(kept):
        assert before.items() <= after.items()
    assert all(len(rows) == TINY["memory.per_class"] for rows in kept[-1].values())


@every_pair
def test_the_written_config_is_the_run_again(method: str, learner: str, plain: Run) -> None:
    config = tiny(method=method, learner=learner)
    again = resolve(yaml.safe_load((plain(config) / "config.yaml").read_text()))
    assert again == config
    assert again.run_id == config.run_id


TINIER = {
    "data.per_class": 12,
    "stream.test_per_class": 3,
    "stream.tasks": 2,
    "shape.queries": 1,
    "train.epochs": 1,
    "train.episodes": 1,
    "eval.episodes": 2,
}


@pytest.mark.parametrize("backbone", COMPLETE_BACKBONES)
def test_every_backbone_embeds_as_it_says_and_trains(backbone: str, plain: Run) -> None:
    config = tiny(TINIER, backbone=backbone)
    experiment = load_experiment(config)
    images = experiment.pixels(experiment.stream.unseen.images()[:3])
    network = new_learner(config, experiment.device).backbone.eval()
    assert network(images).shape == (3, *network.out_shape(images.shape[-1]))
    assert all(math.isfinite(value) for loss in losses(plain(config), 2) for value in loss.values())


@every_pair
def test_every_combination_trains_on_resnet12(
    method: str, learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thin one, on images large enough for maps that Relation Networks can compare."""
    monkeypatch.setitem(CHANNELS, "wide", (4, 6, 8, 10))
    config = tiny({**TINIER, "data.size": 64}, method=method, learner=learner, backbone="resnet12")
    results = run_one(config, tmp_path, lambda event: None)
    terms = losses(tmp_path / config.run_id, len(results.sessions))
    assert terms
    assert all(math.isfinite(value) for loss in terms for value in loss.values())


def test_a_session_with_too_few_classes_says_so(plain: Run) -> None:
    events = [json.loads(line) for line in (plain(tiny(method="erd")) / "events.jsonl").read_text().splitlines()]
    classes = [event["classes"] for event in events if event["event"] == "session"]
    notices = [event["text"] for event in events if event["event"] == "notice" and event["text"].startswith("session")]
    assert classes == [3, 3, 2]
    assert notices == [
        "session 1 has classes for 3-way `mix` episodes only",
        "session 2 has classes for 4-way `mix` episodes only",
        "session 2 has classes for 3-way `exemplar` episodes only",
        "session 3 has classes for 3-way `mix` episodes only",
    ]


def test_the_learner_of_a_finished_run_can_be_loaded(plain: Run) -> None:
    for learner in components("learner"):
        config = tiny(method="erd", learner=learner)
        loaded, last = load_learner(plain(config)), _learner_after(plain(config), SESSIONS)
        assert tensors_digest(loaded.state_dict()) == last
        assert not loaded.training


def test_erd_without_replay_and_distillation_is_ft_bit_for_bit(plain: Run) -> None:
    nothing = {"method.p": 0, "method.lambda_m": 0, "method.lambda_e": 0}
    erd, ft = plain(tiny(nothing, method="erd")), plain(tiny(method="ft"))
    for session in range(1, SESSIONS + 1):
        name = f"checkpoints/{session:03d}-end.safetensors"
        assert (erd / name).read_bytes() == (ft / name).read_bytes()
    results = [json.loads((folder / "results.json").read_text())["sessions"] for folder in (erd, ft)]
    accuracies = [[(s["meta_test"], s["per_task"], s["forgetting"]) for s in sessions] for sessions in results]
    assert accuracies[0] == accuracies[1]


@pytest.mark.parametrize("learner", components("learner"))
def test_episodic_methods_have_the_same_first_session(learner: str, plain: Run) -> None:
    """Episodic: the first session, which has no past, trains the few-shot loss alone. Joint has no such session."""
    configs = {m: tiny(method=m, learner=k) for m, k in RUNNABLE if k == learner}
    folders = {m: plain(config) for m, config in configs.items() if not config.is_bound}
    episodic = {m: folder for m, folder in folders.items() if losses(folder, 1)[0].keys() == {"meta"}}
    assert {"ft", "erd"} & folders.keys() <= episodic.keys()
    logs = [losses(folder, 1) for folder in episodic.values()]
    firsts = [json.loads((folder / "results.json").read_text())["sessions"][0] for folder in episodic.values()]
    assert all(log == logs[0] for log in logs)
    assert all((f["meta_test"], f["per_task"]) == (firsts[0]["meta_test"], firsts[0]["per_task"]) for f in firsts)


def test_later_sessions_of_the_methods_differ(plain: Run) -> None:
    assert losses(plain(tiny(method="ft")), 2) != losses(plain(tiny(method="erd")), 2)


def test_joint_trains_all_classes_at_once_for_as_many_steps_and_is_evaluated_on_the_original_tasks(plain: Run) -> None:
    joint, ft = plain(tiny(method="joint")), plain(tiny(method="ft"))
    assert len(losses(joint, 1)) == sum(len(losses(ft, session)) for session in range(1, SESSIONS + 1))
    (session,) = json.loads((joint / "results.json").read_text())["sessions"]
    assert [task["task"] for task in session["per_task"]] == list(range(1, SESSIONS + 1))
    assert session["classes_seen"] == TINY["data.classes"] - TINY["stream.unseen_classes"]
    assert session["forgetting"] is None
    assert json.loads((joint / "split.json").read_text()) == json.loads((ft / "split.json").read_text())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"p": 0.3}, r"p = 0.3 of a 5-way episode is 1.5 classes.*binomial"),
        ({"cross": "released"}, "against prototypes, and relationnet compares maps"),
    ],
)
def test_erd_refuses_what_it_cannot_do(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ERD(**fields).check(Shape(5, 1, 15), RelationNet)  # type: ignore[arg-type]


@pytest.mark.parametrize("fields", [{"p": 0.3, "strategy": "binomial"}, {"p": "rand"}, {"p": 0.6}, {"p": 0}, {"p": 1}])
def test_erd_accepts_every_share_that_gives_whole_classes_or_is_drawn(fields: dict[str, object]) -> None:
    ERD(**fields).check(Shape(5, 1, 15), Learner)  # type: ignore[arg-type]


def test_a_component_defined_again_replaces_the_first(scratch_registry: None) -> None:
    """As when a notebook's cell is run again after an edit."""
    for default in (1, 2):

        class Edited(ERD, name="edited"):
            strength: int = default

        assert tiny(method="edited").method.build().strength == default
