"""Which panel a setting stands in, and what is said about it."""

from episodica.report.figures.curves import ARRANGED, arrangement, curves
from episodica.report.settings import by_setting


def titles(figure) -> list[str]:
    return [axes.get_title() for axes in figure.axes if axes.axison]


def named(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_shots_stand_beside_each_other_and_every_name_stands_once(make_run):
    runs = [make_run(method, **{"shape.shots": shots}) for shots in (1, 5) for method in ("ft", "erd", "joint")]
    figure = arrangement(by_setting(runs), "all of it")
    assert titles(figure) == [f"glyphs, {shots}-shot, {part}" for shots in (1, 5) for part in ("seen", "unseen")]
    assert sorted(named(figure)) == ["erd", "ft", "joint"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["accuracy, %", ""] * 2


def test_what_else_differs_is_another_row(make_run):
    """Also where nothing of the name tells: no two settings share a panel."""
    runs = [make_run("ft"), make_run("ft", **{"stream.tasks": 2}), make_run("ft", **{"train.lr": 0.1})]
    figure = arrangement(by_setting(runs))
    assert titles(figure)[::2] == [f"glyphs, {tasks} tasks, 1-shot, seen" for tasks in (3, 2, 3)]
    assert all(len(axes.containers) == 1 for axes in figure.axes)


def test_shots_are_those_of_the_examination(make_run):
    figure = arrangement(by_setting([make_run("ft", **{"eval.shots": [1, 2]})]))
    assert titles(figure)[::2] == ["glyphs, 1-shot, seen", "glyphs, 2-shot, seen"]


def test_bounds_are_told_apart_by_their_lines(make_run):
    bounds = [make_run("joint", 0.7), make_run("joint", 0.8, **{"train.episodes_per_step": 2})]
    bounds += [make_run("nrd", 0.9, **{"stream.merged": True, "train.episodes_per_step": n}) for n in (1, 2)]
    (lines,) = by_setting([make_run("ft", 0.5), *bounds])
    for axes in curves(lines).axes:
        drawn = [str(line._unscaled_dash_pattern) for line in axes.lines if len(set(line.get_ydata())) == 1]
        assert len(set(drawn)) == len(bounds)


def test_a_bound_is_a_line_across(make_run):
    (lines,) = by_setting([make_run("ft", 0.5), make_run("joint", 0.7)])
    for axes, metric in zip(curves(lines).axes, ARRANGED, strict=True):
        across = [line for line in axes.lines if line.get_linestyle() == "--"]
        assert [set(line.get_ydata()) for line in across] == [{70.0}], metric
