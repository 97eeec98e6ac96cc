from typing import Any, get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from episodica.config import SECTION_KINDS, RunConfig, field_at, paths, resolve
from episodica.config.flat import flatten, nest
from episodica.config.sections import AugmentConfig, MemoryConfig
from episodica.errors import InputError
from episodica.methods.method import Method
from episodica.models.conv4 import Conv4
from episodica.registry import _components, components, settings_of

DEFAULTS = flatten(resolve({}).tree())
INDIFFERENT = {"data.root", "device", "threads", "kernels", "train.log_every", "train.checkpoint_seconds"}
SPECIAL = {
    "backbone.pools": 2,
    "backbone.train": "none",
    "method.p": 0.4,
    "shape.way": 10,
    "device": "cpu",
    "data.root": "elsewhere",
}


def with_owner(path: str, value: Any) -> dict[str, Any]:
    """A tree with this value, for the component that has the field."""
    section, _, key = path.partition(".")
    tree = nest({path: value})
    if section in SECTION_KINDS and key != "name":
        for name, component in components(SECTION_KINDS[section]).items():
            if key.removesuffix("x") in settings_of(component).model_fields:
                tree[section]["name"] = name
                break
    return tree


def another(path: str) -> Any:
    """A valid value other than the default."""
    value = DEFAULTS[path]
    if path in SPECIAL:
        return SPECIAL[path]
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value / 2 or 0.5
        case list():
            return [number / 2 or 0.5 for number in value]
        case None:
            return 16
        case _:
            return get_args(field_at(path))[-1]


def refusal(tree: Any) -> str:
    with pytest.raises(InputError) as refused:
        resolve(tree)
    return str(refused.value)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", paths())
def test_a_misspelt_field_is_answered_with_the_nearest(path):
    message = refusal(with_owner(f"{path}x", 1))
    assert f"{path}x: no such field" in message.splitlines()[-1]
    assert f'did you mean "{path}"?' in message


def test_of_thousands_of_faults_the_first_ones_are_explained():
    message = refusal({f"k{i}": 1 for i in range(5_000)})
    assert message.endswith("\nand 4980 more")
    assert len(message) < 50_000
    assert len(refusal({"train": {"lr": "x" * 100_000}})) < 5_000


def test_a_misspelt_section_is_answered_with_the_nearest():
    assert refusal({"trian": {"lr": 1}}) == 'trian: no such field; did you mean "train"?'


@pytest.mark.parametrize("section", SECTION_KINDS)
def test_a_misspelt_component_is_answered_with_the_nearest(section):
    kind = SECTION_KINDS[section]
    name = next(iter(components(kind)))
    message = f'{section}.name: unknown {kind} "{name}x": did you mean "{name}"?'
    assert refusal({section: {"name": f"{name}x"}}) == refusal({section: f"{name}x"}) == message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("stream.tasks", 0),
        ("stream.order", "alphabetic"),
        ("stream.seed", -1),
        ("stream.test_per_class", 0),
        ("stream.unseen_classes", 1),
        ("shape.way", 1),
        ("shape.way", 2.5),
        ("shape.shots", 0),
        ("shape.queries", 0),
        ("memory.per_class", 0),
        ("memory.total", 0),
        ("memory.select", "nearest"),
        ("memory.drop", "oldest"),
        ("augment.crop", "centre"),
        ("augment.padding", -1),
        ("augment.scale", [0.5]),
        ("augment.flip", "perhaps"),
        ("augment.brightness", 1.5),
        ("augment.size", 7),
        ("augment.mean", [1, 2]),
        ("train.epochs", 0),
        ("train.episodes_per_step", 0),
        ("train.lr", 0),
        ("train.lr", "fast"),
        ("train.lr", float("nan")),
        ("train.decay", 1.1),
        ("train.parts", 0),
        ("train.bn", "none"),
        ("train.log_every", 0),
        ("train.checkpoint_seconds", -1),
        ("eval.episodes", 1),
        ("eval.shots", "one"),
        ("eval.way", {"a": 1}),
        ("eval.seed", None),
        ("scale", 0),
        ("scale", 2),
        ("device", "gpu"),
        ("device", "cuda:x"),
        ("threads", 0),
        ("seed", -1),
        ("seed", "x"),
        ("method.p", 1.5),
        ("method.p", "random"),
        ("method.lambda_m", -1),
        ("method.kl_clamp", 1),
        ("method.cross", "both"),
        ("method.strategy", "poisson"),
        ("backbone.width", "wider"),
        ("backbone.pools", 3),
        ("data.classes", 3),
    ],
)
def test_a_value_out_of_range_is_named_with_its_path(path, value):
    assert refusal(nest({path: value})).startswith(f"{path} = {value!r}: ")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("train.lr", float("inf")),
        ("method.lambda_m", float("inf")),
        ("augment.mean", [float("nan")] * 3),
        ("augment.std", [0.0, 1.0, 1.0]),
        ("augment.std", [-1.0, 1.0, 1.0]),
    ],
)
def test_numbers_that_cannot_be_computed_with_are_refused(path, value):
    assert path in refusal(nest({path: value}))


def test_everything_wrong_is_said_at_once():
    message = refusal({"train": {"lr": -1, "epoch": 3}, "shape": {"way": 1}, "seeed": 0})
    assert [line.partition(":")[0] for line in message.splitlines()] == [
        "shape.way = 1",
        "train.lr = -1",
        "train.epoch",
        "seeed",
    ]


def test_a_condition_of_the_method_is_named():
    assert refusal({"method": {"p": 0.3}}).startswith("method erd: p = 0.3 of a 5-way episode is 1.5 classes")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"augment.size": 15}, "backbone: conv4 needs images of 16 px and gets 15: use a larger size"),
        (
            {"learner.name": "relationnet"},
            "learner: relationnet relates maps of 4 x 4 or more, and conv4 gives 2 x 2 for",
        ),
        ({"learner.name": "relationnet"}, "backbone.pools: 2), or set augment.size to 64 or more"),
        (
            {"learner.name": "relationnet", "backbone.pools": 2, "eval.centroids": "normalised"},
            "eval.centroids: learner relationnet compares maps, which have no length to normalise: set raw",
        ),
        (
            {"learner.name": "relationnet", "backbone.pools": 2, "method.cross": "released"},
            "method erd: cross: released",
        ),
        ({"learner.name": "relationnet", "backbone.pools": 2, "method.kl_clamp": 0.1}, "method erd: kl_clamp bounds"),
    ],
)
def test_parts_that_do_not_fit_together_are_named_with_a_remedy(changes, message):
    assert message in refusal(nest(changes))


def test_the_network_sees_the_augmented_size_or_that_of_the_data():
    sizes = [resolve(nest(t)).image_size for t in ({}, {"data.size": 48}, {"data.size": 48, "augment.size": 64})]
    assert sizes == [32, 48, 64]
    assert resolve({"data": {"name": "cub"}}).image_size == 84


def test_a_field_of_another_component_is_named_with_its_owner():
    assert refusal({"method": {"name": "ft", "p": 0.2}}).startswith("method.p: no such field of method ft")


def test_a_field_of_another_component_is_not_suggested():
    assert 'did you mean "method.p"?' not in refusal({"method": {"name": "ft", "p": 0.2}})


@pytest.mark.parametrize("tree", [None, [], "x", {"train": None}, {"train": 3}, {"method": None}, {"method": []}])
def test_what_is_no_tree_is_refused(tree):
    assert refusal(tree)


# --- the whole tree --------------------------------------------------------------------------------------------------

changes = st.fixed_dictionaries(
    {},
    optional={
        "method.p": st.sampled_from([0, 0.2, 1, "rand"]),
        "method.kl_clamp": st.floats(0, 0.5),
        "train.lr": st.floats(1e-6, 10),
        "memory.total": st.none() | st.integers(1, 2000),
        "memory.select": st.sampled_from(["auto", "ntc", "random", "herding", "rb"]),
        "augment.scale": st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)).map(list),
        "augment.mean": st.tuples(*[st.floats(-1, 1)] * 3).map(list),
        "eval.shots": st.none() | st.integers(1, 9) | st.lists(st.integers(1, 9), min_size=1, max_size=3),
        "data.root": st.none() | st.text(),
        "threads": st.none() | st.integers(1, 8),
        "seed": st.integers(0, 2**40),
    },
)


@given(changes)
def test_a_config_survives_yaml(changes):
    config = resolve(nest(changes))
    again = resolve(yaml.safe_load(yaml.safe_dump(config.tree())))
    assert again == config
    assert again.run_id == config.run_id


def test_every_path_has_a_field():
    assert set(DEFAULTS) <= set(paths())
    assert [path for path in paths() if not path.endswith(".name") and field_at(path) is None] == []
    assert field_at("train.nothing") is None


@pytest.mark.usefixtures("scratch_registry")
def test_a_field_is_what_the_default_component_says_whichever_was_imported_first():
    known = _components["backbone"]
    known["conv4"] = known.pop("conv4")
    assert get_args(field_at("backbone.width")) == ("classic", "released")


def test_a_memory_has_some_budget_and_the_learners_rule():
    assert resolve({}).memory_rules == MemoryConfig(per_class=20, select="ntc")
    assert resolve({"memory": {"total": 99}}).memory_rules == MemoryConfig(total=99, select="ntc")
    assert resolve({"memory": {"select": "rb"}}).memory_rules.select == "rb"
    assert resolve({"memory": {"select": "ntc"}}).run_id == resolve({}).run_id


@pytest.mark.parametrize(
    ("method", "learner", "select", "normalised"),
    [
        *((name, "protonet", "ntc", False) for name in ("eiml", "erd")),
        *((name, "protonet", "herding", True) for name in ("icarl", "ucir", "podnet")),
        ("erd", "relationnet", "random", False),
    ],
)
def test_methods_and_learners_have_their_own_exemplars_and_centroids(method, learner, select, normalised):
    pools = {"pools": 2} if learner == "relationnet" else {}
    config = resolve({"method": {"name": method}, "learner": {"name": learner}, "backbone": pools})
    assert config.memory_rules.select == select
    assert config.normalised is normalised
    raw = resolve({"method": {"name": method}, "eval": {"centroids": "raw"}, "memory": {"select": "rb"}})
    assert (raw.normalised, raw.memory_rules.select) == (False, "rb")


@pytest.mark.parametrize("method", ["icarl", "ucir", "podnet"])
def test_what_does_nothing_for_a_method_is_said_and_is_not_in_its_id(method):
    plain = resolve({"method": {"name": method}})
    idle = resolve({"method": {"name": method}, "train": {"lr": 0.5, "bn": "split", "epochs": 7}})
    assert (plain.ignored, idle.ignored) == ([], ["train.lr", "train.bn"])
    assert idle.run_id == resolve({"method": {"name": method}, "train": {"epochs": 7}}).run_id


@pytest.mark.parametrize(
    ("method", "merged", "ignored"),
    [
        ("nrd", False, []),
        ("nrd", True, ["train.consolidate", "memory.quality", "memory.codec"]),
        ("joint", False, ["train.consolidate", "memory.quality", "memory.codec"]),
        ("ft", False, ["memory.quality", "memory.codec"]),
    ],
)
def test_all_tasks_at_once_need_no_memory_and_end_nowhere_between(method, merged, ignored):
    plain = {"method": {"name": method}, "stream": {"merged": merged}}
    asked = {"train": {"consolidate": 0.5}, "memory": {"quality": 80, "codec": "avif"}}
    config = resolve(plain | asked)
    assert config.ignored == ignored
    assert config.replays is not ("memory.quality" in ignored)
    kept = {section: fields for section, fields in asked.items() if not any(section in path for path in ignored)}
    assert config.run_id == resolve(plain | kept).run_id


def test_a_config_made_directly_is_the_resolved_one():
    assert RunConfig() == resolve({})
    assert MemoryConfig() == MemoryConfig(per_class=20)


def test_one_number_is_a_list_of_one():
    assert resolve({"eval": {"shots": 5}}) == resolve({"eval": {"shots": [5]}})


def test_the_shape_of_training_is_evaluated_first():
    config = resolve({"eval": {"way": [5, 3], "shots": [5, 1], "episodes": 7}})
    assert [(s.way, s.shots, s.queries, s.episodes) for s in config.evaluation_shapes] == [
        (5, 1, 15, 7),
        (5, 5, 15, 7),
        (3, 5, 15, 7),
        (3, 1, 15, 7),
    ]


@pytest.mark.parametrize(("epochs", "scale", "expected"), [(200, 1, 200), (200, 0.1, 20), (3, 0.01, 1)])
def test_the_scale_shortens_the_schedule(epochs, scale, expected):
    assert resolve({"train": {"epochs": epochs}, "scale": scale}).epochs == expected


# --- the identity of a run -------------------------------------------------------------------------------------------


def test_the_id_of_a_known_run_does_not_change():
    assert resolve({}).run_id == "erd-9770b1f62426"


@pytest.mark.parametrize("path", sorted(path for path in DEFAULTS if not path.endswith(".name")))
def test_the_id_depends_on_all_that_decides_the_numbers_and_on_nothing_else(path):
    beside = {"memory.quality": 80} if path == "memory.codec" else {}  # without which it is refused
    changed = resolve(nest({**beside, path: another(path)}))
    assert flatten(changed.tree())[path] != DEFAULTS[path]
    assert (changed.run_id == resolve(nest(beside)).run_id) == (path in INDIFFERENT)


@pytest.mark.usefixtures("scratch_registry")
def test_a_field_that_is_added_later_leaves_the_ids_as_they_are():
    def define(fields):
        type("Later", (Conv4,), {"__annotations__": dict.fromkeys(fields, int), **fields}, name="later")

    define({})
    before = resolve({"backbone": {"name": "later"}, "seed": 3}).run_id
    define({"added": 1})
    assert resolve({"backbone": {"name": "later"}, "seed": 3}).run_id == before
    assert resolve({"backbone": {"name": "later", "added": 2}, "seed": 3}).run_id != before


@pytest.mark.parametrize("section", SECTION_KINDS)
def test_the_id_depends_on_the_components(section):
    large = {"augment": {"size": 84}}
    fields = {name: settings_of(c).model_fields.values() for name, c in components(SECTION_KINDS[section]).items()}
    names = [name for name, known in fields.items() if not any(field.is_required() for field in known)]
    assert len({resolve({**large, section: {"name": name}}).run_id for name in names}) == len(names)


def test_a_memory_that_is_not_kept_does_not_matter():
    for name, component in components("method").items():
        ids = {resolve({"method": {"name": name}, "memory": {"per_class": n}}).run_id for n in (5, 6)}
        assert len(ids) == (2 if component.replays else 1)  # type: ignore[attr-defined]


def test_the_id_is_that_of_the_resolved_config():
    default = resolve({}).run_id
    assert default == resolve({"memory": {"per_class": 20, "select": "ntc"}, "train": {"epochs": 200.0}}).run_id
    assert default.startswith("erd-")


# --- components that are defined later -------------------------------------------------------------------------------


def define(default: float) -> type[Method]:
    class Late(Method, name="late"):
        strength: float = default

    return Late


@pytest.mark.usefixtures("scratch_registry")
def test_a_component_defined_after_import_can_be_chosen():
    assert "unknown method" in refusal({"method": {"name": "late"}})
    late = define(0.5)
    config = resolve({"method": {"name": "late", "strength": 2}})
    assert isinstance(config.method.build(), late)
    assert "method.strength" in paths()
    assert config.run_id.startswith("late-")


@pytest.mark.usefixtures("scratch_registry")
def test_a_component_defined_again_takes_the_place_of_the_first():
    for default in (1.0, 2.0):
        define(default)
        config = resolve({"method": {"name": "late"}})
        assert config.tree()["method"]["strength"] == default


def test_a_stream_cannot_stop_after_its_end():
    assert resolve({"stream": {"tasks": 4, "sessions": 4}}).stream.learned == 4
    with pytest.raises(InputError, match=r"sessions = 5 is more than the stream has tasks \(4\)"):
        resolve({"stream": {"tasks": 4, "sessions": 5}})


class TestPretrainedBackbones:
    def test_images_come_as_the_backbone_was_trained(self):
        config = resolve({"backbone": {"name": "efficientnet_lite", "version": 1}})
        assert config.image_size == config.data.size == 240  # type: ignore[attr-defined]
        assert config.augment.mean == (127 / 255,) * 3
        assert config.augment.std == (128 / 255,) * 3

    def test_what_is_asked_for_wins(self):
        mean, std = (0.5, 0.5, 0.5), (0.1, 0.1, 0.1)
        asked = {"data": {"size": 64}, "augment": {"mean": mean, "std": std}}
        config = resolve({"backbone": {"name": "efficientnet_lite"}, **asked})
        assert (config.image_size, config.augment.mean, config.augment.std) == (64, mean, std)
        smaller = resolve({"backbone": {"name": "efficientnet_lite"}, "augment": {"size": 64}})
        assert smaller.image_size == 64
        assert smaller.data.size is None  # type: ignore[attr-defined]

    def test_the_written_config_gives_the_same_run(self):
        for backbone in ("efficientnet_lite", "conv4"):
            config = resolve({"backbone": {"name": backbone}})
            assert resolve(config.tree()).run_id == config.run_id
            assert resolve(config.tree()) == config

    def test_another_normalisation_is_another_run(self):
        backbone = {"backbone": {"name": "efficientnet_lite"}}
        usual = AugmentConfig()
        other = resolve({**backbone, "augment": {"mean": usual.mean, "std": usual.std}})
        assert other.run_id != resolve(backbone).run_id

    def test_which_blocks_train_is_part_of_the_run_and_all_is_the_usual(self):
        one, usual, all_of_them = (
            resolve({"backbone": {"name": "conv4", **more}}) for more in ({"train": 1}, {}, {"train": "all"})
        )
        assert one.backbone.train == 1  # type: ignore[attr-defined]
        assert usual.run_id == all_of_them.run_id != one.run_id
        with pytest.raises(InputError, match=r"backbone\.train = 0"):
            resolve({"backbone": {"name": "conv4", "train": 0}})
