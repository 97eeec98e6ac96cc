"""The result tables on the screen: method x session, both accuracies with their intervals, forgetting, gap to joint."""

from collections.abc import Sequence

from rich import table as rich
from rich.markup import escape

from episodica.config import RunConfig
from episodica.report.aggregate import Line
from episodica.report.cells import Cell, Table
from episodica.report.comparison import METRICS, Run
from episodica.report.settings import by_setting, tags
from episodica.report.tables import accuracy_table, forgetting_table


def results_tables(runs: Sequence[Run]) -> list[rich.Table]:
    """For each setting three tables with one line for each method: both accuracies and forgetting."""
    settings = by_setting(runs)
    beside = [part[0].config for part in settings]
    return [
        _rich(table, f"{_setting(part[0].config, beside)}{heading}")
        for part in settings
        for table, heading in _of_one_setting(part)
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


def _rich(table: Table, title: str) -> rich.Table:
    """Without the column of repeats where nothing is repeated, the paper's numbers, and columns of these alone."""
    repeated = any(row.note != "1 seed" for row in table.rows)
    drawn = rich.Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    drawn.min_width = len(title)  # else a narrow table folds its title
    drawn.add_column("session", no_wrap=True)
    filled = [i for i, _ in enumerate(table.columns) if any(_cell(row.cells[i]) for row in table.rows)]
    for heading in (*["runs"] * repeated, *(table.columns[i] for i in filled)):
        drawn.add_column(heading, justify="right", no_wrap=True)
    for row in table.rows:
        drawn.add_row(escape(row.name), *[row.note] * repeated, *(_cell(row.cells[i]) for i in filled))
    return drawn


def _cell(cell: Cell) -> str:
    return escape(cell.number) + cell.plus_minus.replace(" ", "")
