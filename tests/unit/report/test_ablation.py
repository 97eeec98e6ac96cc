"""Which lines are variants of which, and what was varied."""

from episodica.report.ablation import ablations, principal
from episodica.report.aggregate import lines


def members(found):
    return {one.name: [value for value, _ in one.members] for one in found}


def test_the_line_nearest_to_the_defaults_stands_for_its_method(make_cifar_run):
    runs = [make_cifar_run("erd", **change) for change in ({"memory.per_class": 5}, {}, {"method.p": 0.4})]
    table = lines([*runs, make_cifar_run("ft"), make_cifar_run("joint")])
    assert [line.name for line in principal(table)] == [table[1].name, "ft", "joint"]


def test_families_of_the_paper(make_cifar_run):
    changes = [
        {},
        *({"method.p": p} for p in (0.6, 0.0, "rand")),
        {"method.strategy": "binomial"},
        {"method.strategy": "binomial", "method.p": 0.4},
        {"method.p": 0.4},
        {"method.lambda_m": 0.0},
        {"method.lambda_m": 0.0, "method.lambda_e": 0.0},
        *({"memory.per_class": n} for n in (50, 1)),
        *({"memory.total": n} for n in (2000, 500)),
        {"memory.select": "herding"},
    ]
    table = lines([make_cifar_run("erd", **change) for change in changes])
    found, rest = ablations(table)
    assert members(found) == {
        "erd-p": ["0", "0.2", "0.4", "0.6", "rand"],
        "erd-strategy": ["binomial / 0.2", "binomial / 0.4", "fixed / 0.2", "fixed / 0.4"],
        "erd-lambda_m-lambda_e": ["0 / 0", "0 / 0.5", "0.5 / 0.5"],
        "erd-per_class": ["1", "20", "50"],
        "erd-total": ["500", "2000", "not set"],
        "erd-select": ["herding", "ntc"],
    }
    assert [one.numeric for one in found] == [False, False, False, True, False, False]
    assert rest == []


def test_any_single_field_is_an_ablation_and_what_fits_none_is_left_over(make_run):
    changes = [{}, {"train.decay": 0.5}, {"train.decay": 0.5, "train.bn": "split"}]
    table = lines([make_run("ft", **change) for change in changes])
    found, rest = ablations(table)
    assert members(found) == {"ft-decay": ["0.5", "0.8"]}
    assert [line.name for line in rest] == ["ft decay=0.5 bn=split"]


def test_components_of_eiml(make_cifar_run):
    fields = ("method.exemplars_in_distillation", "method.exemplars_in_meta_loss")
    runs = [make_cifar_run("eiml", **dict(zip(fields, on, strict=True))) for on in ((False, False), (True, True))]
    found, _ = ablations(lines([*runs, make_cifar_run("erd")]))
    assert members(found) == {"eiml-exemplars_in_distillation-exemplars_in_meta_loss": ["no / no", "yes / yes"]}
