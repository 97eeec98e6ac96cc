"""The accuracy matrix against the results it is made of."""

import math

import pytest

from episodica.report.aggregate import lines
from episodica.report.figures.matrix import heat_maps, matrix


def test_cells_are_the_accuracies_of_the_tasks(make_run):
    runs = [make_run("ft", 0.4), make_run("ft", 0.6, seed=1)]
    renumbered = [
        (config, results.model_copy(update={"sessions": [_from_one(row) for row in results.sessions]}))
        for config, results in runs
    ]
    (line,) = lines(renumbered)
    table = matrix(line)
    assert len(table) == len(table[0]) == 3
    for task, row in enumerate(table):
        for session, value in enumerate(row):
            if task > session:
                assert math.isnan(value)
            else:
                assert value == pytest.approx(50 + 0.1 * session)


def test_nothing_reached_is_no_picture(make_run):
    config, results = make_run("ft")
    empty = results.model_copy(update={"sessions": [], "status": "running"})
    assert heat_maps(lines([(config, empty)])) is None


def _from_one(row):
    """The fixture counts tasks from 0."""
    return row.model_copy(update={"per_task": [t.model_copy(update={"task": t.task + 1}) for t in row.per_task]})
