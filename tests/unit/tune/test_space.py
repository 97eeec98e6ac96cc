import pytest

from conformance.tiny import TINY
from episodica.config import resolve
from episodica.errors import InputError
from episodica.sweep.grid import plan
from episodica.sweep.recipe import Recipe, load_recipe
from episodica.tune.axis import Range, parse_axis
from episodica.tune.space import Space

ERD = Recipe("tiny", base=TINY)


def space(*over: str, recipe: Recipe = ERD, **fixed: object) -> Space:
    return Space.of(recipe, {key.replace("__", "."): value for key, value in fixed.items()}, [*map(parse_axis, over)])


def test_only_shares_that_fit_an_episode_are_tried() -> None:
    assert str(space("method.p=0:1").axes[0]) == "method.p=0:1:0.2"
    assert space("method.p=0:1", method__strategy="binomial").axes == (Range("method.p", 0.0, 1.0),)
    assert space("method.p=0:1").config({"method.p": 0.6000000000000001}).method.model_dump()["p"] == 0.6


def test_validation_classes_are_held_out_of_every_try_and_none_of_the_best_recipe() -> None:
    found = space("train.lr=1e-4:1e-2:log")
    assert found.config({"train.lr": 0.001}).stream.validation_classes == 10
    best = found.best_recipe({"train.lr": 0.002}, "the best")
    assert best["about"] == "the best"
    config = resolve({key: value for key, value in best.items() if key != "about"})
    assert (config.stream.validation_classes, config.train.lr) == (0, 0.002)
    expected = plan(ERD, {"train.lr": 0.002})
    assert [config.run_id] == [one.run_id for one in expected]


def test_meta_test_classes_are_refused() -> None:
    with pytest.raises(InputError, match="meta-test classes, which are for the end"):
        space("train.lr=1e-4:1e-2", stream__validation_classes=0)


@pytest.mark.parametrize(
    ("over", "fixed", "reason"),
    [
        ([], {}, "nothing to choose"),
        (["train.lr=1:2", "train.lr=1:3"], {}, "set twice"),
        (["train.lr=1:2"], {"train__lr": 0.1}, "set twice"),
        (["method.p=0:3"], {}, "method.p"),
        (["method.weight=0:1"], {}, "no such field of method erd"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_is(over: list[str], fixed: dict, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        space(*over, **fixed)


def test_a_recipe_of_several_runs_must_be_narrowed() -> None:
    with pytest.raises(InputError, match=r"4 runs, and a search is about one.*--method.name \(erd, ft, joint\)"):
        space("train.lr=1e-4:1e-2", recipe=load_recipe("cifar100_4"))


def test_a_journal_chooses_among_the_values_of_the_axes_alone() -> None:
    """It may be a stranger's, and a name of a class would be imported as if the user had written it."""
    found = space("backbone.name=conv4,resnet12")
    assert found.config({"backbone.name": "conv4"}).backbone.name == "conv4"
    for value in ("os:system", None, ["conv4"]):
        with pytest.raises(InputError, match=r"is not in backbone\.name=conv4,resnet12"):
            found.config({"backbone.name": value})
    for value in (1.0, "0.001", float("nan"), None):
        with pytest.raises(InputError, match=r"is not in train\.lr"):
            space("train.lr=1e-4:1e-2").config({"train.lr": value})
