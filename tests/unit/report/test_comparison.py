"""What runs are called beside each other, and which sessions are shown."""

from itertools import product

import pytest

from episodica.report.comparison import labels, setting, shown_sessions


def test_a_method_that_occurs_once_needs_no_more_than_its_name(make_config):
    configs = [make_config({"method.name": name}) for name in ("ft", "erd", "joint")]
    assert list(labels(configs).values()) == ["ft", "erd", "joint"]


def test_runs_of_a_method_are_told_apart_by_what_differs(make_config):
    configs = [make_config({"method.name": "ft"}), *(make_config({"method.lambda_e": v}, seed=2) for v in (0.0, 1.0))]
    assert list(labels(configs).values()) == ["ft", "erd lambda_e=0.0", "erd lambda_e=1.0"]


def test_fields_of_the_same_name_are_told_apart(make_config):
    configs = [make_config({"stream.seed": s}, seed=t) for s, t in ((0, 1), (1, 0))]
    assert labels(configs)[configs[0].run_id] == "erd stream.seed=0 seed=1"


def test_where_many_fields_differ_defaults_go_without_saying(make_config):
    changes = [{}, {"method.lambda_e": 0.0}, {"memory.per_class": 5}, {"train.lr": 0.1, "memory.per_class": 2}]
    configs = [make_config({"method.name": "erd", **change}) for change in changes]
    assert list(labels(configs).values()) == [
        "erd",
        "erd lambda_e=0.0",
        "erd per_class=5",
        "erd per_class=2 lr=0.1",
    ]


def test_a_switch_that_is_off_goes_without_saying(make_config):
    switch = "method.exemplars_in_distillation"
    configs = [make_config({"method.name": "eiml", "shape.way": 5, switch: on}) for on in (False, True)]
    assert list(labels(configs).values()) == ["eiml", "eiml exemplars_in_distillation=True"]


def test_no_two_runs_have_one_name(make_config):
    choices = product((True, False), (20, 5), (0.001, 0.01))
    configs = [make_config({"augment.flip": flip, "memory.per_class": n, "train.lr": lr}) for flip, n, lr in choices]
    named = list(labels(configs).values())
    assert len(set(named)) == len(configs)
    assert (named[0], named[-1]) == ("erd", "erd per_class=5 flip=False lr=0.01")


def test_a_setting_does_not_depend_on_method_memory_and_repeats(make_config):
    base = setting(make_config())
    for change in ({"method.name": "ft"}, {"memory.per_class": 5}, {"stream.seed": 1}, {"seed": 1}, {"threads": 1}):
        assert setting(make_config(change)) == base
    for change in ({"shape.shots": 2}, {"train.epochs": 3}, {"scale": 0.5}, {"stream.tasks": 2}):
        assert setting(make_config(change)) != base


@pytest.mark.parametrize(
    ("tasks", "shown"), [(1, [1]), (4, [1, 2, 3, 4]), (6, [1, 2, 3, 4, 5, 6]), (10, [2, 4, 8, 10]), (16, [2, 4, 8, 16])]
)
def test_the_sessions_shown_are_those_of_the_paper(tasks, shown):
    assert shown_sessions(tasks) == shown


def test_what_is_not_set_and_what_does_nothing_go_without_saying(make_config):
    configs = [make_config(), make_config({"memory.quality": 80, "memory.codec": "avif"})]
    assert list(labels(configs).values()) == ["erd", "erd quality=80 codec=avif"]
