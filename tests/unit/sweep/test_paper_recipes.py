"""The packaged recipes of the paper's tables and figures stand for exactly these runs, written out by hand."""

from functools import cache
from pathlib import Path

import pytest

from episodica.api import plan
from episodica.config import RunConfig

FIVE = ("ft", "ida", "eiml", "erd", "joint")
MINI, CIFAR, CUB, TIERED = "mini_imagenet", "cifar100", "cub", "tiered_imagenet"
PROTO, RELATION = "protonet", "relationnet"

# Data set, tasks, backbone, learner, shots, method, and what is varied.
Run = tuple[str, int, str, str, int, str, str]

REFERENCES: set[Run] = {
    (CIFAR, 16, "conv4", PROTO, 1, "ft", ""),
    (CIFAR, 16, "conv4", PROTO, 1, "ida", ""),
    (CIFAR, 16, "conv4", PROTO, 1, "eiml", ""),
    (CIFAR, 16, "conv4", PROTO, 1, "joint", ""),
}


def erd(*varied: str) -> set[Run]:
    return {(CIFAR, 16, "conv4", PROTO, 1, "erd", text) for text in varied}


def eiml(*varied: str) -> set[Run]:
    return {(CIFAR, 16, "conv4", PROTO, 1, "eiml", text) for text in varied}


TABLE3: set[Run] = {
    (CIFAR, 16, "conv4", PROTO, shots, method, varied)
    for shots in (1, 5)
    for method, varied in (
        *((name, "") for name in ("ft", "ida", "eiml", "erd", "ucir", "joint")),
        ("icarl", "method.lr=0.1"),
        ("podnet", "method.nca=released"),
    )
}

PAPER: dict[str, tuple[int, set[Run]]] = {
    "table2": (
        60,
        {
            (data, 4, backbone, PROTO, shots, method, "")
            for data in (MINI, CIFAR, CUB)
            for backbone in ("conv4", "resnet12")
            for shots in (1, 5)
            for method in FIVE
        },
    ),
    "table3": (16, TABLE3),
    "fig_cl": (16, TABLE3),
    "table4": (
        15,
        {
            (data, tasks, "conv4", RELATION, 1, method, "")
            for data in (MINI, CIFAR, CUB)
            for tasks, method in ((16, "ft"), (16, "erd"), (4, "ft"), (4, "erd"), (4, "joint"))
        },
    ),
    "fig_16task": (
        30,
        {
            (data, 16, "conv4", PROTO, k, method, "")
            for data in (CIFAR, MINI, TIERED)
            for k in (1, 5)
            for method in FIVE
        },
    ),
    "fig_16task_cub": (10, {(CUB, 16, "conv4", PROTO, shots, method, "") for shots in (1, 5) for method in FIVE}),
    "table_ci": (5, {(MINI, 4, "conv4", PROTO, 1, method, "") for method in FIVE}),
    "ablation_p": (9, REFERENCES | erd("method.p=0.0", "", "method.p=0.4", "method.p=0.6", "method.p=rand")),
    "ablation_lambda": (
        8,
        REFERENCES | erd("method.lambda_m=0.0 method.lambda_e=0.0", "method.lambda_e=0.0", "method.lambda_m=0.0", ""),
    ),
    "ablation_lambda_equal": (
        10,
        REFERENCES
        | erd(
            "method.lambda_m=0.0 method.lambda_e=0.0",
            "method.lambda_m=0.1 method.lambda_e=0.1",
            "",
            "method.lambda_m=1.0 method.lambda_e=1.0",
            "method.lambda_m=2.0 method.lambda_e=2.0",
            "method.lambda_m=10.0 method.lambda_e=10.0",
        ),
    ),
    "ablation_nex": (
        9,
        REFERENCES | erd("memory.per_class=2", "memory.per_class=5", "memory.per_class=10", "", "memory.per_class=50"),
    ),
    "ablation_bf": (
        7,
        REFERENCES
        | erd(
            "memory.per_class=None memory.total=500",
            "memory.per_class=None memory.total=1000",
            "memory.per_class=None memory.total=2000",
        ),
    ),
    "ablation_strategy": (
        8,
        REFERENCES | erd("", "method.p=0.4", "method.strategy=binomial", "method.p=0.4 method.strategy=binomial"),
    ),
    "ablation_selection": (
        8,
        REFERENCES | erd("", "memory.select=random", "memory.select=herding", "memory.select=rb"),
    ),
    "ablation_components": (
        9,
        REFERENCES
        | eiml(
            "method.exemplars_in_distillation=True",
            "method.exemplars_in_meta_loss=True",
            "method.exemplars_in_distillation=True method.exemplars_in_meta_loss=True",
        )
        | erd("", "method.cross=released"),
    ),
}


@cache
def planned(recipe: str) -> list[RunConfig]:
    return plan(recipe)


def described(config: RunConfig) -> Run:
    shape = config.data.name, config.stream.tasks, config.backbone.name, config.learner.name, config.shape.shots
    return (*shape, config.method.name, " ".join(_varied(config)))


def _varied(config: RunConfig) -> list[str]:
    """What is not as it is in the paper's main experiments, with the exemplars' number of the data set."""
    fields = type(config.method).model_fields
    values = {key: getattr(config.method, key) for key in fields if key != "name"}
    varied = [f"method.{key}={value}" for key, value in values.items() if value != fields[key].default]
    memory = {"per_class": 10 if config.data.name == CUB else 20, "total": None, "drop": "random"}
    varied += [f"memory.{k}={getattr(config.memory, k)}" for k in memory if getattr(config.memory, k) != memory[k]]
    if config.memory.select not in ("auto", "ntc"):
        varied.append(f"memory.select={config.memory.select}")
    return varied


@pytest.mark.parametrize("recipe", PAPER)
def test_the_runs_are_those_of_the_table_or_figure(recipe: str) -> None:
    count, expected = PAPER[recipe]
    runs = planned(recipe)
    assert len(runs) == count == len(expected)
    assert {described(config) for config in runs} == expected


@pytest.mark.parametrize("recipe", PAPER)
def test_the_settings_are_the_protocol(recipe: str) -> None:
    for config in planned(recipe):
        four = config.stream.tasks == 4
        assert (config.shape.way, config.shape.queries, config.eval.queries) == (5, 15, 15)
        assert (config.epochs, config.train.episodes, config.eval.episodes) == (
            200,
            *((200, 10_000) if four else (50, 1_000)),
        )
        assert (config.train.lr, config.train.decay, config.train.parts, config.train.bn) == (1e-3, 0.8, 4, "joint")
        assert (config.train.episodes_per_step, config.scale, config.seed, config.stream.seed) == (1, 1.0, 0, 0)
        assert config.image_size == (32 if config.data.name == CIFAR else 84)
        assert config.stream.test_per_class is config.stream.unseen_classes is None  # the data set's own numbers
        assert config.eval.way is config.eval.shots is None
        if config.backbone.name == "conv4":
            pools = 2 if config.learner.name == RELATION else 4
            assert (config.backbone.width, config.backbone.pools) == ("classic", pools)  # type: ignore[attr-defined]
        if recipe != "ablation_selection" and config.method.name in ("erd", "eiml"):
            assert config.memory_rules.select == ("random" if config.learner.name == RELATION else "ntc")


SEVEN = ("ft", "ida", "eiml", "erd", "icarl", "ucir", "podnet")


def test_the_authors_pipeline_is_there_for_every_method() -> None:
    runs = planned("released")
    assert [config.method.name for config in runs] == [*SEVEN, "joint", "joint"]
    assert [config.train.episodes_per_step for config in runs] == [1] * len(SEVEN) + [1, 2]
    for config in runs:
        assert (config.image_size, config.augment.crop, config.augment.scale) == (84, "resized", (0.08, 1.0))
        assert (config.augment.brightness, config.augment.contrast, config.augment.colour) == (0.4, 0.4, 0.4)
        assert config.augment.centre
        assert (config.stream.order, config.train.bn) == ("natural", "released")
        assert config.backbone.width == "released"  # type: ignore[attr-defined]
        assert config.memory_rules.select == ("herding" if config.method.name in SEVEN[4:] else "ntc")
        if config.method.name == "erd":
            assert (config.method.cross, config.method.kl_clamp) == ("released", 1e-4)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "own", ["method: {name: ft}", "axes: {method.name: [ft, erd]}", "method: {name: [ft, erd]}\naxes: {seed: [1]}"]
)
def test_erd_is_the_authors_in_every_recipe_that_is_like_theirs(tmp_path: Path, own: str) -> None:
    recipe = tmp_path / "own.yaml"
    recipe.write_text(f"like: released\n{own}\n")
    methods = {config.method.name: config.method for config in plan(str(recipe))}
    assert {"ft", "erd"} <= methods.keys()
    assert (methods["erd"].cross, methods["erd"].kl_clamp) == ("released", 1e-4)  # type: ignore[attr-defined]


def test_the_study_of_seen_classes_goes_from_our_setting_to_the_authors() -> None:
    length = {"stream.sessions": 2, "train.epochs": 50, "eval.episodes": 2000, "method.name": ["ft", "erd"]}
    ours, theirs = ({config.run_id for config in plan(name, length)} for name in ("cifar100_16", "released"))
    assert ours | theirs <= ids("seen_classes")
    assert len(ids("seen_classes")) == 2 * 9
    assert {(config.stream.learned, config.epochs) for config in planned("seen_classes")} == {(2, 50)}


def test_either_method_of_the_study_of_seen_classes_can_be_chosen_alone() -> None:
    alone = {config.run_id for name in ("ft", "erd") for config in plan("seen_classes", {"method.name": name})}
    assert alone == ids("seen_classes")


def ids(recipe: str) -> set[str]:
    return {config.run_id for config in planned(recipe)}


def test_what_is_the_same_run_is_trained_once_for_all_recipes() -> None:
    ablations = [name for name in PAPER if name.startswith("ablation")]
    shared = set.intersection(*(ids(name) for name in ablations))
    assert len(shared) == 4
    assert {run.partition("-")[0] for run in shared} == {"ft", "ida", "eiml", "joint"}
    with_default = [name for name in ablations if name != "ablation_bf"]
    default = set.intersection(*(ids(name) for name in with_default)) - shared
    assert len(default) == 1
    assert shared | default <= ids("table3")
    assert ids("table3") == ids("fig_cl")
    assert ids("table_ci") <= ids("table2")
    assert len(ids("table3") & ids("fig_16task")) == 10
    everything = set.union(*(ids(name) for name in PAPER))
    ablated = 4 + 3 + 4 + 4 + 3 + 2 + 3 + 4  # lambdas of 0 and p = 0.4 are in two of them
    assert len(everything) == 60 + 16 + 15 + (30 - 10) + 10 + ablated == 148


@pytest.mark.parametrize("data", [CIFAR, CUB, MINI])
def test_recipes_of_a_data_set_share_their_runs_with_those_of_the_paper(data: str) -> None:
    one_step = [config for config in planned(f"{data}_4") if config.train.episodes_per_step == 1]
    assert {config.run_id for config in one_step} <= ids("table2")


def test_planning_needs_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EPISODICA_DATA", raising=False)
    monkeypatch.setattr("episodica.data.dataset.FileDataset.locate", None)
    assert len(plan("table_ci", {"data.root": "nowhere"})) == 5


def test_a_scaled_recipe_is_shorter_in_training_alone_and_is_another_run() -> None:
    whole, scaled = planned("ablation_bf"), plan("ablation_bf", {"scale": 0.05})
    assert [config.epochs for config in scaled] == [10] * len(whole)
    assert [config.eval for config in scaled] == [config.eval for config in whole]
    assert not {config.run_id for config in whole} & {config.run_id for config in scaled}
