import itertools

import pytest
import yaml

from episodica.config import resolve
from episodica.config.flat import flatten, nest
from episodica.errors import InputError
from episodica.sweep.grid import plan
from episodica.sweep.recipe import Recipe, default_recipe, load_recipe, packaged_recipes

NAMES = {"data.name": "glyphs", "backbone.name": "conv4", "learner.name": "protonet"}
CASES = ({"method.name": "ft"}, {"method.name": "erd"}, {"method.name": "joint", "train.episodes_per_step": 2})


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "own") -> str:
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return str(path)

    return write


def planned(base=None, cases=CASES, **overrides) -> list[dict]:
    """What the runs of a recipe say, flat."""
    return [
        flatten(config.tree()) for config in plan(Recipe("r", base=NAMES | (base or {}), groups=(cases,)), overrides)
    ]


def values(runs: list[dict], *fields: str) -> list[tuple]:
    return [tuple(run.get(field) for field in fields) for run in runs]


def test_axes_are_crossed_with_each_other_and_with_cases():
    found = values(planned({"seed": [0, 1], "train.lr": [0.1, 0.2]}), "method.name", "seed", "train.lr")
    assert sorted(found) == sorted((m, s, lr) for m in ("ft", "erd", "joint") for s in (0, 1) for lr in (0.1, 0.2))


def test_cases_bring_their_own_values():
    found = planned({"train.episodes_per_step": 3})
    assert values(found, "method.name", "train.episodes_per_step") == [("ft", 3), ("erd", 3), ("joint", 2)]


def test_an_override_keeps_the_cases_that_agree():
    assert values(planned(**{"method.name": "joint"}), "method.name", "train.episodes_per_step") == [("joint", 2)]


def test_an_override_that_no_case_agrees_with_replaces_them():
    cases = ({"method.name": "ft", "train.lr": 0.1}, {"method.name": "joint", "train.lr": 0.2})
    assert values(planned(cases=cases, **{"method.name": "erd"}), "method.name", "train.lr") == [("erd", 0.001)]


def test_an_override_of_what_no_case_mentions_goes_to_all():
    assert values(planned(seed=3), "method.name", "seed") == [("ft", 3), ("erd", 3), ("joint", 3)]


def test_an_override_replaces_an_axis():
    assert values(planned({"seed": [0, 1]}, cases=CASES[:1], seed=5), "seed") == [(5,)]


def test_a_list_where_one_value_is_wanted_is_an_axis():
    found = planned(cases=({"method.name": "erd"},), seed=[0, 1], **{"method.p": [0.2, "rand"]})
    assert values(found, "seed", "method.p") == [(0, 0.2), (0, "rand"), (1, 0.2), (1, "rand")]


def test_names_can_be_an_axis():
    assert values(planned(**{"method.name": ["ft", "erd"]}), "method.name") == [("ft",), ("erd",)]


@pytest.mark.parametrize(
    ("path", "value"), [("eval.shots", [1, 5]), ("eval.way", [5, 3]), ("augment.mean", [0.0, 0.0, 0.0])]
)
def test_a_list_where_a_list_is_wanted_is_no_axis(path, value):
    assert values(planned(cases=({"method.name": "ft"},), **{path: value}), path) == [(value,)]


def test_a_list_of_lists_is_an_axis_of_lists():
    found = planned(cases=({"method.name": "ft"},), **{"eval.shots": [[1], [1, 5]]})
    assert values(found, "eval.shots") == [([1],), ([1, 5],)]


def test_overrides_may_be_nested():
    assert values(planned(method={"p": 0.4}, train={"lr": 0.5}), "method.p", "train.lr") == [
        (None, 0.5),
        (0.4, 0.5),
        (None, 0.5),
    ]


def test_a_field_of_one_method_is_left_out_of_the_others():
    found = values(planned({"method.lambda_e": [0.1, 0.2]}), "method.name", "method.lambda_e")
    assert found == [("ft", None), ("erd", 0.1), ("erd", 0.2), ("joint", None)]


def test_a_field_that_no_method_of_the_grid_has_is_refused():
    with pytest.raises(InputError, match=r"method\.p: no such field of method ft"):
        planned(cases=({"method.name": "ft"}, {"method.name": "joint"}), **{"method.p": 0.4})
    with pytest.raises(InputError, match=r"method\.lambdas: no such field"):
        planned(**{"method.lambdas": 1})


def test_runs_with_the_same_id_are_one():
    assert len(planned({"threads": [1, 2], "device": ["cpu", "auto"]})) == 3
    found = planned(cases=({"method.name": "ft"}, {"method.name": "erd"}), **{"memory.per_class": [5, 10]})
    assert [name for (name,) in values(found, "method.name")] == ["ft", "erd", "erd"]


def test_an_empty_list_gives_no_run():
    with pytest.raises(InputError, match="seed: an empty list"):
        planned(seed=[])


def test_an_empty_recipe_is_the_default_run():
    assert plan(Recipe("empty"), {}) == [resolve({})]


def test_paths_and_trees_say_the_same():
    tree = {"a": {"b": 1, "c": {"d": [2]}}, "e": {}}
    assert flatten(tree) == {"a.b": 1, "a.c.d": [2], "e": {}}
    assert nest(flatten(tree)) == tree
    assert flatten({"a": {"b.c": 1}}) == {"a.b.c": 1}
    with pytest.raises(InputError, match=r"a\.b: a has a value already"):
        nest({"a": 1, "a.b": 2})


@pytest.mark.parametrize("name", packaged_recipes())
def test_a_packaged_recipe_can_be_planned(name):
    assert load_recipe(name).about
    assert plan(load_recipe(name), {})


def test_a_recipe_is_read_from_a_file(write):
    recipe = load_recipe(write(yaml.safe_dump({"about": "mine", "axes": {"seed": [1, 2]}, "cases": list(CASES)})))
    assert (recipe.name, recipe.about) == ("own", "mine")
    assert (recipe.base, recipe.groups) == ({}, (CASES, ({"seed": 1}, {"seed": 2})))


def test_every_case_of_a_group_goes_with_every_case_of_the_others(write):
    cases = {"order": [{"stream.seed": 0}, {"stream.seed": 1, "stream.tasks": 4}], "method": list(CASES)}
    recipe = load_recipe(write(yaml.safe_dump({"cases": cases}, sort_keys=False)))
    found = [flatten(config.tree()) for config in plan(recipe, {})]
    assert values(found, "stream.seed", "stream.tasks", "method.name", "train.episodes_per_step") == [
        *((0, 16, method, steps) for method, steps in (("ft", 1), ("erd", 1), ("joint", 2))),
        *((1, 4, method, steps) for method, steps in (("ft", 1), ("erd", 1), ("joint", 2))),
    ]


def test_a_name_that_no_case_has_takes_their_place_in_its_own_group_only():
    orders = ({"stream.seed": 3}, {"stream.seed": 4})
    found = plan(Recipe("r", groups=(orders, CASES)), {"method.name": "ida"})
    assert [(config.method.name, config.stream.seed) for config in found] == [("ida", 3), ("ida", 4)]


def test_a_list_within_a_case_is_an_axis_of_that_case_and_its_names_can_be_chosen():
    cases = ({"method.name": ["ft", "erd"], "seed": [1, 2]}, {"method.name": "joint"})
    assert values(planned(cases=cases), "method.name", "seed") == [
        *(("ft", 1), ("ft", 2), ("erd", 1), ("erd", 2), ("joint", 0))
    ]
    assert values(planned(cases=cases, **{"method.name": "erd"}), "method.name", "seed") == [("erd", 1), ("erd", 2)]


def test_a_recipe_can_be_like_another(write):
    cases = "cases: [{method.name: ft}]"
    settings = load_recipe("cifar100_16")
    same = load_recipe(write("like: cifar100_16\nabout: same\nstream: {seed: 3}"))
    assert (same.name, same.about, same.groups) == ("own", "same", settings.groups)
    assert same.base == settings.base | {"stream.seed": 3}
    other = load_recipe(write(f"like: cifar100_16\n{cases}"))
    assert (other.about, other.base, other.groups) == ("", settings.base, (({"method.name": "ft"},),))


def test_a_recipe_that_is_like_itself_or_like_nothing_is_refused(write):
    path = write("")
    with pytest.raises(InputError, match="is like itself"):
        load_recipe(write(f"like: {path}"))
    with pytest.raises(InputError, match='unknown recipe "cifar100_61"'):
        load_recipe(write("like: cifar100_61"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid YAML"),
        ("- 1", "must be a mapping of config keys, not list"),
        ("cases: 3", "cases must be a list of mappings"),
        ("cases: []", "cases must be a list of mappings"),
        ("cases: [ft]", "cases must be a list of mappings"),
        ("cases: {data: {data.name: cub}}", "cases must be a list of mappings"),
        ("axes: [1]", "axes must map key paths to lists"),
        ("axes: {seed: 1}", "axes must map key paths to lists"),
        ("axes: {seed: []}", "axes must map key paths to lists"),
    ],
)
def test_a_malformed_recipe_is_refused(write, text, message):
    with pytest.raises(InputError, match=message):
        load_recipe(write(text))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        load_recipe(str(tmp_path / "binary.yaml"))


def test_an_unknown_recipe_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r'unknown recipe "quickstrat", .* did you mean "quickstart"\?'):
        load_recipe("quickstrat")


@pytest.mark.parametrize(
    ("asked", "recipe"),
    [
        ({}, "quickstart"),
        ({"data.name": "folder"}, "folder"),
        ({"data.name": "cub"}, "cub_16"),
        ({"seed": 1}, "quickstart"),
    ],
)
def test_without_a_recipe_the_data_set_decides(asked, recipe):
    assert default_recipe(asked) == recipe


def test_fields_of_a_component_are_not_meant_for_another_in_its_place():
    recipe = Recipe("r", base={"backbone.name": "conv4", "backbone.width": "released", "data.size": 64})
    (other,) = plan(recipe, {"backbone.name": "resnet12"})
    assert (other.backbone.name, other.backbone.width) == ("resnet12", "wide")  # type: ignore[attr-defined]
    (chosen,) = plan(recipe, {"backbone.name": "resnet12", "backbone.width": "narrow"})
    assert chosen.backbone.width == "narrow"  # type: ignore[attr-defined]
    both = plan(recipe, {"backbone.name": ["conv4", "resnet12"]})
    assert [config.backbone.width for config in both] == ["released", "wide"]  # type: ignore[attr-defined]
    assert all(config.image_size == 64 for config in both)


def test_fields_of_several_components_are_for_those_that_have_them(write):
    runs = plan(load_recipe(write("method: {name: [ft, erd], p: 0.4}")), {})
    assert [(config.method.name, getattr(config.method, "p", None)) for config in runs] == [("ft", None), ("erd", 0.4)]


@pytest.mark.parametrize("name", ["name: erd, ", ""])  # erd is what there is where none is named
def test_a_recipe_with_another_component_leaves_the_fields_of_the_one_it_replaces(write, name):
    like = write(f"method: {{{name}p: 0.4}}\nseed: 3")
    (other,) = plan(load_recipe(write(f"like: {like}\nmethod: {{name: ft}}", "other")), {})
    assert (other.method.name, other.seed) == ("ft", 3)
    (same,) = plan(load_recipe(write(f"like: {like}\nmethod: {{name: erd, lambda_e: 0.1}}", "same")), {})
    assert (same.method.p, same.method.lambda_e) == (0.4, 0.1)  # type: ignore[attr-defined]


MANY = "[" + ", ".join(map(str, range(10_000))) + "]"


@pytest.mark.parametrize(
    "text",
    [
        f"axes: {{seed: {MANY}, stream.seed: {MANY}, eval.seed: {MANY}}}",  # 10^12 runs
        f"seed: {MANY}\nstream.seed: {MANY}\neval.seed: {MANY}",
        f"cases: [{{seed: {MANY}, stream.seed: {MANY}, eval.seed: {MANY}}}]",
    ],
)
def test_a_grid_that_no_memory_holds_is_refused(write, text):
    with pytest.raises(InputError, match="more than 10,000 runs"):
        plan(load_recipe(write(text)), {})


def test_references_that_stand_for_very_much_are_refused(write):
    letters = "abcdefghijklmnopqrstuvwxyz"
    laughs = "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in itertools.pairwise(letters))
    with pytest.raises(InputError, match="reference"):
        load_recipe(write("a: &a [x, x]\n" + laughs))


def test_a_recipe_without_end_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "long.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="more than 262,144 bytes"):
        load_recipe(str(path))


def test_a_repetition_without_end_is_refused():
    with pytest.raises(InputError, match="at most"):
        plan(Recipe("empty"), {}, seeds=10**12)
