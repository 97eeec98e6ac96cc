"""The tables of a report."""

import pytest

from episodica.report.aggregate import lines
from episodica.report.markdown import accuracy_table, gap_to_joint

CIFAR = {"stream.tasks": 16, "shape.way": 5, "method.p": 0.2}


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_a_table_has_a_line_a_method_and_the_gap_to_the_bound(make_run):
    found = lines([make_run("ft", 0.5), make_run("erd", 0.6), make_run("joint", 0.7)])
    heading, _, *rows = cells(accuracy_table(found, "meta_test"))
    assert heading == ["method", "seeds", "2", "3", "avg", "gap to joint"]
    assert rows == [
        ["ft", "1", "50.1 ± 0.0", "50.2 ± 0.0", "50.1", "19.8"],
        ["erd", "1", "60.1 ± 0.0", "60.2 ± 0.0", "60.1", "9.8"],
        ["joint", "1", "", "70.0 ± 0.0", "", ""],
    ]


def test_the_fairer_bound_counts_and_only_one_of_the_same_setting(make_run):
    ours, weak, strong, other = lines(
        [
            make_run("erd", 0.5),
            make_run("joint", 0.6),
            make_run("joint", 0.7, **{"train.episodes_per_step": 2}),
            make_run("joint", 0.9, **{"stream.seed": 1}),
        ]
    )
    assert gap_to_joint(ours, [ours, weak, strong, other], "seen") == pytest.approx(19.8)
    assert gap_to_joint(ours, [ours, other], "seen") is None


def test_the_papers_number_stands_beside_ours(make_run):
    run = make_run("erd", 0.45, **CIFAR)
    results = run[1].model_copy(update={"dataset": "cifar100", "shape": {"way": 5, "shots": 1, "queries": 15}})
    _, _, row = cells(accuracy_table(lines([(run[0], results)]), "meta_test"))
    assert row[2:] == [
        "45.1 ± 0.0 (40.1)",
        "45.3 ± 0.0 (45.0)",
        "45.7 ± 0.0 (50.0)",
        "46.5 ± 0.0 (50.5)",
        "45.8 (48.1)",
        "",
    ]


def test_a_variant_of_a_method_has_no_number_in_the_paper(make_run):
    for changes in ({"method.lambda_e": 0.0}, {"method.cross": "released"}, {"stream.validation_classes": 2}):
        run = make_run("erd", **{**CIFAR, **changes})
        results = run[1].model_copy(update={"dataset": "cifar100", "shape": {"way": 5, "shots": 1, "queries": 15}})
        assert "(" not in accuracy_table(lines([(run[0], results)]), "meta_test")
