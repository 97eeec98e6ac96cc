"""Tables as data, and what each writer makes of them."""

import csv
import re
from io import StringIO

import pytest

from episodica.report.aggregate import lines
from episodica.report.cells import Cell, Row, Table, shown
from episodica.report.formats.csv import as_csv
from episodica.report.formats.latex import escape, latex
from episodica.report.formats.markdown import escape as markdown_escape
from episodica.report.formats.markdown import markdown
from episodica.report.tables import accuracy_table, forgetting_table

HOSTILE = '=cmd|"/c" <script>alert(1)</script> & 50%_$x^{\\input{/etc/passwd}} ~#\n| new'


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_a_table_has_a_line_a_method_and_the_gap_to_the_bound(make_run):
    found = lines([make_run("ft", 0.5), make_run("erd", 0.6), make_run("joint", 0.7)])
    heading, _, *rows = cells(markdown(accuracy_table(found, "meta_test")))
    assert heading == ["method", "runs", "1", "2", "3", "avg", "gap to joint"]
    assert rows == [
        ["ft", "1 seed", "50.0 ± 0.0", "50.1 ± 0.0", "50.2 ± 0.0", "50.1", "19.8"],
        ["erd", "1 seed", "**60.0** ± 0.0", "**60.1** ± 0.0", "**60.2** ± 0.0", "**60.1**", "9.8"],
        ["joint", "1 seed", "", "", "70.0 ± 0.0", "", ""],
    ]


def test_each_bound_has_a_gap_of_its_own(make_run):
    stronger = make_run("joint", 0.7, **{"train.episodes_per_step": 2})
    table = accuracy_table(lines([make_run("erd", 0.5), make_run("joint", 0.6), stronger]), "seen")
    assert table.columns[-2:] == ("gap to joint, 1 a step", "gap to joint, 2 a step")
    assert [cell.number for cell in table.rows[0].cells[-2:]] == ["9.8", "19.8"]


def test_a_method_with_all_tasks_at_once_is_the_bound_of_itself_alone(make_run):
    merged = {"stream.merged": True, "train.episodes_per_step": 2}
    runs = [make_run("erd", 0.5), make_run("nrd", 0.6), make_run("joint", 0.7), make_run("nrd", 0.8, **merged)]
    table = accuracy_table(lines(runs), "seen")
    assert table.columns[-2:] == ("gap to joint", "gap to the method with all tasks at once")
    assert [[cell.number for cell in row.cells[-2:]] for row in table.rows[:2]] == [["19.8", ""], ["9.8", "20.0"]]


def test_the_papers_number_and_the_difference_stand_beside_ours(make_cifar_run):
    table = accuracy_table(lines([make_cifar_run("erd", 0.45)]), "meta_test")
    _, _, row = cells(markdown(table))
    assert row[2:] == [
        "45.1 ± 0.0 (40.1, +5.0)",
        "45.3 ± 0.0 (45.0, +0.3)",
        "45.7 ± 0.0 (50.0, −4.3)",
        "46.5 ± 0.0 (50.5, −4.0)",
        "45.8 (48.1, −2.4)",
        "(5.0)",
    ]
    assert table.rows[0].cells[0].source == "table 3 (tab:compare_CL_methods) of the main text, row erd, session 2"


def test_the_papers_bound_stands_where_ours_does(make_cifar_run):
    """A bound of 16 tasks has no number of the paper's bound of 4, not even after session 4."""
    of_4, of_16 = (
        accuracy_table(lines([make_cifar_run("joint", **{"stream.tasks": tasks})]), "meta_test") for tasks in (4, 16)
    )
    assert [cell.paper for cell in of_4.rows[0].cells[:4]] == [None, None, None, 55.4]
    assert [cell.paper for cell in of_16.rows[0].cells[:4]] == [None] * 4


def test_forgetting_has_no_line_for_a_bound(make_run):
    table = forgetting_table(lines([make_run("ft"), make_run("joint")]))
    assert table is not None
    assert [row.name for row in table.rows] == ["ft"]
    assert table.columns == ("2", "3")
    assert forgetting_table(lines([make_run("joint")])) is None


@pytest.mark.parametrize(
    ("number", "signed", "text"), [(1.25, False, "1.2"), (-0.04, True, "0.0"), (-3.0, False, "−3.0"), (2, True, "+2.0")]
)
def test_numbers_have_one_digit_and_zero_no_sign(number, signed, text):
    assert shown(number, signed) == text


def test_csv_reads_back_as_what_was_written():
    cell = Cell(43.912345, 3.8, 0.2, 50.5, "table 3")
    table = Table("t", "T", ("16", "avg"), (Row("erd", (cell, Cell()), "2 seeds"),))
    (line,) = csv.DictReader(StringIO(as_csv(table)))
    assert (line["method"], line["runs"], line["column"]) == ("erd", "2 seeds", "16")
    numbers = [float(line[key]) for key in ("value", "interval_over_repeats", "interval_over_episodes", "paper")]
    assert numbers == [43.912345, 3.8, 0.2, 50.5]
    assert float(line["difference"]) == pytest.approx(-6.587655)


def test_hostile_names_stay_names():
    table = Table("t", HOSTILE, ("2",), (Row(HOSTILE, (Cell(word=HOSTILE),)),))
    (line,) = csv.DictReader(StringIO(as_csv(table)))
    assert line["method"] == line["value"] == "'" + HOSTILE.replace("\n", "\ufffd")  # no formula, no control character
    assert len(markdown(table).splitlines()) == 3
    assert "<script>" not in markdown(table)
    drawn = latex(table)
    assert "\\input" not in drawn.replace("\\textbackslash{}input", "")
    assert drawn.count("\\\\\n") == 2


def test_markdown_escapes_every_special_mark_once():
    assert markdown_escape("<b> & a_b|c *d* $x$") == r"&lt;b&gt; &amp; a\_b\|c \*d\* \$x\$"


def test_latex_escapes_every_special_mark():
    assert escape("a_b & 5% #1 ${x}") == r"a\_b \& 5\% \#1 \$\{x\}"
    assert escape("\\ ~ ^") == r"\textbackslash{} \textasciitilde{} \textasciicircum{}"


def test_latex_has_as_many_cells_in_every_line(make_cifar_run):
    found = lines([make_cifar_run("ft"), make_cifar_run("erd"), make_cifar_run("joint", 0.6)])
    drawn = latex(accuracy_table(found, "meta_test"))
    rows = [line for line in drawn.splitlines() if line.endswith("\\\\")]
    assert len({line.count("&") for line in rows}) == 1
    assert re.search(r"\\textbf\{", drawn)
    assert drawn.index("\njoint") > drawn.index("\nerd")
