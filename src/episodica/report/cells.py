"""A table as data: rows of cells. Each writer (screen, Markdown, HTML, LaTeX, CSV) lays the same cells out."""

from dataclasses import dataclass, replace

from episodica.report.aggregate import shown_interval

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Cell:
    """A number in % or points with its intervals and the paper's number beside it, or a word where there is none."""

    value: float | None = None
    over_repeats: float | None = None
    over_episodes: float | None = None
    paper: float | None = None
    source: str = ""  # where the paper prints its number
    word: str = ""
    signed: bool = False
    best: bool = False

    @property
    def interval(self) -> float | None:
        return shown_interval(self.over_repeats, self.over_episodes)

    @property
    def difference(self) -> float | None:
        return None if self.value is None or self.paper is None else self.value - self.paper

    @property
    def number(self) -> str:
        return self.word if self.value is None else shown(self.value, self.signed)

    @property
    def plus_minus(self) -> str:
        return "" if self.interval is None else f"± {shown(self.interval)}"

    @property
    def apart(self) -> str:
        return "" if self.difference is None else shown(self.difference, signed=True)

    @property
    def beside(self) -> str:
        """The paper's number and the difference of ours to it, in brackets."""
        parts = [] if self.paper is None else [shown(self.paper), self.apart]
        return f"({', '.join(filter(None, parts))})" if parts else ""


@dataclass(frozen=True)
class Row:
    name: str
    cells: tuple[Cell, ...]
    note: str = ""  # over how many runs
    bound: bool = False


@dataclass(frozen=True)
class Table:
    name: str  # of its files
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    first: str = "method"

    @property
    def noted(self) -> bool:
        return any(row.note for row in self.rows)

    def worded(self, column: int) -> bool:
        """Whether it holds no numbers."""
        return all(row.cells[column].value is None and row.cells[column].paper is None for row in self.rows)


def shown(number: float, signed: bool = False) -> str:
    """With one digit, as the paper has it; a zero has no sign."""
    text = f"{abs(number):.1f}"
    if float(text) == 0:
        return text
    return (MINUS if number < 0 else "+" if signed else "") + text


def with_best(rows: tuple[Row, ...], columns: range) -> tuple[Row, ...]:
    """Marks the highest number of each column among rows that are no bound, where there are several to choose from."""
    best = {}
    for column in columns:
        found = [cell.value for row in rows if not row.bound and (cell := row.cells[column]).value is not None]
        if len(found) > 1:
            best[column] = max(found)
    return tuple(
        replace(
            row,
            cells=tuple(
                replace(cell, best=not row.bound and cell.value is not None and best.get(i) == cell.value)
                for i, cell in enumerate(row.cells)
            ),
        )
        for row in rows
    )
