"""Accuracy by session in the paper's arrangement: seen classes left, unseen ones right, the bound a dashed line."""

from collections.abc import Mapping, Sequence
from typing import Any

from episodica.config import RunConfig
from episodica.report.aggregate import Line
from episodica.report.comparison import METRICS
from episodica.report.figures.canvas import colours, grid, styled

ARRANGED = ("seen", "meta_test")
BOUNDS = {  # a method with all tasks at once, or joint training; with several episodes a step, or one
    (False, False): "--",
    (False, True): ":",
    (True, False): (0, (6, 2)),
    (True, True): "-.",
}
HANDLE, LETTER = 0.6, 0.075  # inches that a name takes in a legend


@styled
def curves(lines: Sequence[Line], title: str = "") -> Any:
    """Both accuracies of one setting."""
    figure, panels = grid(1, 2, 4.5, 3.6, sharey=True)
    for axes, metric in zip(panels[0], ARRANGED, strict=True):
        panel(axes, lines, metric)
        axes.set_title(METRICS[metric])
    panels[0][0].set_ylabel(_accuracy(lines))
    legend(figure, panels[0])
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


@styled
def arrangement(settings: Sequence[Sequence[Line]], title: str = "") -> Any:
    """Seen and unseen classes for each number of shots beside each other, as in the paper's large figure; a row for
    all that settings differ in besides, such as the data set."""
    places = [_row(lines) for lines in settings]
    rows, shots = list(dict.fromkeys(places)), sorted({_shots(lines) for lines in settings})
    names = _row_names([settings[places.index(row)][0].config for row in rows])
    figure, panels = grid(len(rows), 2 * len(shots), 3.2, 2.7)
    for axes in panels.flat:
        axes.set_axis_off()
    for lines, place in zip(settings, places, strict=True):
        row, column = rows.index(place), 2 * shots.index(_shots(lines))
        for axes, metric in zip(panels[row][column:], ARRANGED, strict=False):
            axes.set_axis_on()
            panel(axes, lines, metric)
            axes.set_title(f"{names[row]}, {_shots(lines)}-shot, {METRICS[metric].split(' ')[0]}", fontsize=9)
        panels[row][column].set_ylabel("accuracy, %")
    legend(figure, list(panels.flat))
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _shots(lines: Sequence[Line]) -> int:
    return lines[0].runs[0][1].shape["shots"]


def _row(lines: Sequence[Line]) -> str:
    """All that decides in which row a setting stands; what was evaluated counts, not what was trained."""
    way = lines[0].runs[0][1].shape["way"]
    return str([way, *((path, value) for path, value in lines[0].setting.items() if path != "shape.shots")])


def _row_names(configs: Sequence[RunConfig]) -> list[str]:
    """The data set, and what else of the usual axes is not the same in all rows."""
    words = [(c.data.name, f"{c.stream.tasks} tasks", c.learner.name, c.backbone.name) for c in configs]
    columns = [place for place, column in enumerate(zip(*words, strict=True)) if not place or len(set(column)) > 1]
    return [", ".join(row[place] for place in columns) for row in words]


def panel(axes: Any, lines: Sequence[Line], metric: str) -> None:
    last = max((line.last for line in lines if not line.bound), default=1)
    for line, shade in zip(lines, colours(lines), strict=True):
        _draw(axes, line, metric, shade)
    count_sessions(axes, last)


def count_sessions(axes: Any, last: int) -> None:
    axes.set_xlabel("session")
    axes.set_xticks(range(1, last + 1) if last <= 8 else [1, *range(2, last + 1, max(last // 8, 1))])


def legend(figure: Any, panels: Sequence[Any], shown: Mapping[str, str] | None = None) -> None:
    """Below all panels, each name once, as many beside each other as fit: a phone has no room beside the panels.
    Where it is given, `shown` says which names, and as what."""
    named = {name: handle for axes in panels for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    if shown is not None:
        named = {shown[name]: handle for name, handle in named.items() if name in shown}
    if named:
        room = figure.get_figwidth() / (HANDLE + LETTER * max(map(len, named)))
        columns = max(1, min(len(named), int(room)))
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=columns, fontsize=9)


def _accuracy(lines: Sequence[Line]) -> str:
    shape = lines[0].runs[0][1].shape
    return f"{shape['way']}-way {shape['shots']}-shot accuracy, %"


def _draw(axes: Any, line: Line, metric: str, shade: str) -> None:
    """Bars are over episodes; of several repeats the single ones are thin lines behind their mean."""
    found = [(s, v) for s in range(1, line.last + 1) if (v := line.at(s, metric)) is not None]
    if not found:
        return
    at, means = [s for s, _ in found], [100 * v.mean for _, v in found]
    widths = [100 * (v.over_episodes or 0) for _, v in found]
    if line.bound:
        axes.axhline(
            means[-1],
            color=shade,
            linestyle=BOUNDS[line.config.stream.merged, line.config.train.episodes_per_step > 1],
            linewidth=1.4,
            label=line.name,
        )
        axes.axhspan(means[-1] - widths[-1], means[-1] + widths[-1], color=shade, alpha=0.12, linewidth=0)
        return
    axes.errorbar(at, means, yerr=widths, color=shade, marker="o", markersize=3.5, capsize=2, label=line.name)
    for _, results in line.counted if len(line.counted) > 1 else ():
        own = [100 * getattr(row, metric).mean for row in results.sessions]
        axes.plot(range(1, len(own) + 1), own, color=shade, linewidth=0.6, alpha=0.5)
