"""The result tables on the screen: method x session, both accuracies with their intervals, forgetting, gap to joint.

No number is ever cut: where a table is wider than the screen, its headings are folded, and columns for which there is
no room stand below, beside the names once more.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich import table as rich
from rich.cells import cell_len
from rich.markup import escape

from episodica.config import RunConfig
from episodica.report.aggregate import Line
from episodica.report.cells import Cell, Table
from episodica.report.comparison import METRICS, Run
from episodica.report.settings import by_setting, tags
from episodica.report.tables import accuracy_table, forgetting_table

BETWEEN = 2  # columns of the screen between those of a table

Columns = list[list[str]]  # each a heading and its cells


def results_tables(runs: Sequence[Run], width: int) -> list[rich.Table]:
    """For each setting three tables with one line for each method: both accuracies and forgetting."""
    settings = by_setting(runs)
    beside = [part[0].config for part in settings]
    return [
        drawn
        for part in settings
        for table, heading in _of_one_setting(part)
        for drawn in _rich(table, f"{_setting(part[0].config, beside)}{heading}", width)
    ]


def _setting(config: RunConfig, beside: Sequence[RunConfig]) -> str:
    """What the heading begins with: a shortened schedule always, the rest where there is another."""
    learner, schedule, *more = tags(config, beside)
    words = [config.data.name, f"{config.stream.tasks} tasks", learner] if len(beside) > 1 else []
    if len({tags(other, beside)[1] for other in beside}) > 1:
        words.append(schedule)
    label = ", ".join([*words, *more])
    return f"{label}: " if label else ""


def _of_one_setting(part: Sequence[Line]) -> list[tuple[Table, str]]:
    shape = part[0].runs[0][1].shape
    tables = [accuracy_table(part, metric) for metric in METRICS]
    asked = f"{shape['way']}-way {shape['shots']}-shot accuracy"
    titled = [(table, table.title.replace("Accuracy", asked) + ", % ± 95 % interval") for table in tables]
    lost = forgetting_table(part)
    return [*titled, (lost, lost.title)] if lost else titled


def _rich(table: Table, title: str, width: int) -> Iterator[rich.Table]:
    """Without the column of repeats where nothing is repeated, the paper's numbers, and columns of these alone."""
    names = ["session", *(row.name for row in table.rows)]
    columns = [["runs", *(row.note for row in table.rows)]] if any(row.note != "1 seed" for row in table.rows) else []
    cells = [[heading, *(_cell(row.cells[i]) for row in table.rows)] for i, heading in enumerate(table.columns)]
    columns += [column for column in cells if any(column[1:])]
    if _wide(names) + sum(map(_wide, columns)) > width:
        columns = [_folded(column) for column in columns]
    for number, part in enumerate(_side_by_side(columns, width - min(_wide(names), width // 2))):
        drawn = rich.Table(title_justify="left", title_style="bold", box=None, padding=(0, BETWEEN, 0, 0))
        if number == 0:
            drawn.title, drawn.min_width = title, len(title)  # else a narrow table folds its title
        drawn.add_column(names[0], overflow="fold")
        for heading, *_ in part:
            drawn.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
        for name, *line in zip(names[1:], *(column[1:] for column in part), strict=True):
            drawn.add_row(escape(name), *map(escape, line))
        yield drawn


def _wide(column: Sequence[str]) -> int:
    return BETWEEN + max(cell_len(line) for cell in column for line in cell.split("\n"))


def _folded(column: Sequence[str]) -> list[str]:
    """With a heading of several lines, none of them longer than need be."""
    heading, *cells = column
    longest = max(map(cell_len, (*heading.split(), *cells)))
    return ["\n".join(wrap(heading, longest)), *cells]


def _side_by_side(columns: Columns, room: int) -> list[Columns]:
    """As many as there is room for, again and again; one at least."""
    parts: list[Columns] = []
    left = 0
    for column in columns:
        if not parts or _wide(column) > left:
            parts.append([])
            left = room
        parts[-1].append(column)
        left -= _wide(column)
    return parts


def _cell(cell: Cell) -> str:
    return cell.number + cell.plus_minus.replace(" ", "")
