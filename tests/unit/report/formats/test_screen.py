"""The result tables on the screen."""

import re
from io import StringIO

import pytest
from rich.console import Console

from episodica.report.formats.screen import results_tables

WIDE = 250


def shown(*runs) -> list[list[str]]:
    """The cells of all lines, heading first, of all tables."""
    lines = []
    for table in results_tables(runs, WIDE):
        columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
        lines += [list(line) for line in zip(*columns, strict=True)]
    return lines


def test_the_table_shows_sessions_average_and_gap(make_run):
    head, *body = shown(make_run("ft", 0.5), make_run("erd", 0.6), make_run("joint", 0.7))
    assert head[1:] == ["1", "2", "3", "avg", "gap to joint"]
    cells = {row[0]: row[1:] for row in body[:4]}
    assert cells["ft"] == ["50.0±0.0", "50.1±0.0", "50.2±0.0", "50.1", "19.8"]
    assert cells["erd"][-1] == "9.8"
    assert cells["joint"] == ["", "", "70.0±0.0", "", ""]


def test_seeds_are_one_line_that_says_so(make_run):
    head, first, *_ = shown(make_run("ft", 0.5), make_run("ft", 0.6, seed=1))
    assert head[1:3] == ["runs", "1"]
    assert first[:3] == ["ft", "2 seeds", "55.0±63.5"]


def test_forgetting_begins_with_the_second_session(make_run):
    assert shown(make_run("ft", 0.5))[-1] == ["ft", "−0.1", "−0.1"]


def test_joint_training_alone_is_shown(make_run):
    assert any("70.0±0.0" in row for row in shown(make_run("joint", 0.7)))


def test_a_heading_says_what_sets_its_runs_apart(make_run):
    def titles(*runs) -> set[str]:
        return {str(table.title).partition(": ")[0] for table in results_tables(runs, WIDE)}

    assert all(title.startswith(("3-way", "Forgetting")) for title in titles(make_run("ft")))
    assert titles(make_run("ft", scale=0.5)) == {"schedule scaled by 0.5"}
    assert titles(make_run("ft"), make_run("ft", **{"stream.tasks": 2})) == {
        f"glyphs, {tasks} tasks, protonet on conv4" for tasks in (2, 3)
    }
    lengths = titles(make_run("ft"), make_run("ft", **{"train.epochs": 7}))
    assert len(lengths) == 2
    assert any("7 epochs" in title for title in lengths)


def test_a_narrow_table_keeps_its_title_on_one_line(make_run):
    *_, forgetting = results_tables([make_run("ft", 0.5)], 80)
    screen = Console(width=80, record=True, file=StringIO())
    screen.print(forgetting)
    assert screen.export_text().splitlines()[0].rstrip() == forgetting.title


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120, WIDE])
def test_no_number_is_cut_on_any_screen(make_run, width):
    """As of `released`: two bounds, and names that are as long as numbers are wide."""
    runs = [
        make_run("ft", 0.5), make_run("erd", 0.6), make_run("erd", 0.55, **{"memory.per_class": 7}),
        *(make_run("joint", 0.7, **{"train.episodes_per_step": episodes}) for episodes in (1, 2)),
    ]  # fmt: skip

    def numbers(width: int) -> list[str]:
        screen = Console(width=width, record=True, file=StringIO())
        for table in results_tables(runs, width):
            screen.print(table)
        text = screen.export_text()
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        return sorted(re.findall(r"−?\d+\.\d(?:±\d+\.\d)?", text))

    assert numbers(width) == numbers(10 * WIDE)
