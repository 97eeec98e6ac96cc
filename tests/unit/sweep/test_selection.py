"""`--only` keeps the runs that a plain filter keeps; `--orders` and `--seeds` are axes; parts are shares."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from episodica.api import plan
from episodica.config import RunConfig
from episodica.errors import InputError
from episodica.sweep.grid import plan as plan_recipe
from episodica.sweep.recipe import Recipe
from episodica.sweep.selection import Only, Part

CASES = ({"method.name": "ft"}, {"method.name": "erd", "method.p": [0.2, "rand"]}, {"method.name": "joint"})


def kept(*only: str) -> list[tuple[str, object, int]]:
    recipe = Recipe("r", base={"seed": [0, 1]}, groups=(CASES,))
    runs = plan_recipe(recipe, {}, [Only.parse(text) for text in only])
    return [(run.method.name, getattr(run.method, "p", None), run.seed) for run in runs]


def test_one_of_several_values() -> None:
    assert kept("method.name=ft,joint") == [("ft", None, 0), ("ft", None, 1), ("joint", None, 0), ("joint", None, 1)]


def test_several_conditions_must_all_hold() -> None:
    assert kept("method.name=ft,erd", "seed=1", "method.p=0.2,rand") == [("erd", 0.2, 1), ("erd", "rand", 1)]
    assert kept("method.name=ft,erd", "method.name=ft", "seed=0") == [("ft", None, 0)]


def test_a_run_without_the_field_is_not_kept() -> None:
    assert kept("method.p=rand") == [("erd", "rand", 0), ("erd", "rand", 1)]


def test_values_are_read_as_yaml() -> None:
    assert Only.parse("eval.shots=[1, 5],null") == ("eval.shots", [[1, 5], None])
    assert Only.parse("scale=1e-1, 1") == ("scale", ["1e-1", 1])
    assert len(kept("memory.total=null")) == 8


@pytest.mark.parametrize("text", ["method.name", "method.name=", "=ft", "method.name=[", ""])
def test_a_condition_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="only"):
        kept(text)


def test_an_unknown_path_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r'no run has method\.nam; did you mean "method\.name"\?'):
        kept("method.nam=ft")


def test_no_run_left_is_said_with_what_there_is() -> None:
    with pytest.raises(InputError, match=r"only method\.name=ida leaves no run: there is 'ft', 'erd', 'joint'"):
        kept("method.name=ida")
    with pytest.raises(InputError, match=r"only method\.weight=1\.0 leaves no run: there is no such field"):
        kept("method.weight=1.0")


def seeds(runs: list[RunConfig]) -> list[tuple[int, int]]:
    return [(run.stream.seed, run.seed) for run in runs]


def test_orders_and_seeds_repeat_every_run() -> None:
    runs = plan("table_ci", only={"method.name": ["erd"]}, orders=2, seeds=3)
    assert seeds(runs) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert seeds(plan("table_ci", {"stream.seed": [5, 7]}, only={"method.name": "ft"}, seeds=2)) == [
        *((5, 0), (5, 1), (7, 0), (7, 1))
    ]
    assert len(plan("table_ci", {"train.lr": [0.1, 0.2]}, seeds=2)) == 5 * 2 * 2


def test_seeds_take_the_place_of_those_of_a_recipe() -> None:
    runs = plan("cifar100_16_quick", only={"method.name": ["erd", "ucir"]}, seeds=3)
    assert [(run.method.name, run.seed) for run in runs] == [(m, s) for m in ("erd", "ucir") for s in range(3)]


@pytest.mark.parametrize("wrong", [{"seeds": 0}, {"orders": -1}])
def test_a_number_of_repetitions_is_positive(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="how often to repeat"):
        plan("table_ci", **wrong)  # type: ignore[arg-type]


def test_two_ways_to_choose_seeds_do_not_mix() -> None:
    with pytest.raises(InputError, match=r"seeds = 2 and seed = 5 both choose"):
        plan("table_ci", {"seed": 5}, seeds=2)
    with pytest.raises(InputError, match=r"orders = 2 and stream\.seed = \[1\] both choose"):
        plan("table_ci", {"stream": {"seed": [1]}}, orders=2)


@given(st.integers(1, 40), st.integers(1, 12))
def test_parts_hold_every_run_once_and_are_equal_but_for_one(runs: int, of: int) -> None:
    grid: Any = list(range(runs))
    parts: list[Any] = [Part(number, of).take(grid) for number in range(1, of + 1)]
    assert sorted(run for part in parts for run in part) == grid
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["", "3", "0/4", "5/4", "1/0", "a/b", "1/2/3", "-1/2"])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="such as --part 3/16"):
        Part.parse(text)
