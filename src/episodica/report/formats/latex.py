"""A table as LaTeX, in the paper's form; it needs no package."""

from episodica.report.cells import MINUS, Cell, Row, Table

ESCAPED = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        '"': "''",
        MINUS: "$-$",
        "±": r"$\pm$",
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    }
)


def latex(table: Table) -> str:
    """The bounds stand apart, below the methods; the best number of a column is bold."""
    bounds = [row for row in table.rows if row.bound]
    methods = [row for row in table.rows if not row.bound]
    groups = [[_row(row, table.noted) for row in part] for part in (methods, bounds)]
    heading = " & ".join(map(escape, (table.first, *["runs"] * table.noted, *table.columns)))
    body = "\n\\hline\n".join("\n".join(f"{line} \\\\" for line in lines) for lines in groups if lines)
    return (
        "\\begin{table}\n\\centering\n"
        f"\\begin{{tabular}}{{|l|{'c' * (table.noted + len(table.columns))}|}}\n"
        f"\\hline\n{heading} \\\\\n\\hline\\hline\n"
        f"{body}\n\\hline\n\\end{{tabular}}\n"
        f"\\caption{{{escape(table.title)}}}\n\\end{{table}}\n"
    )


def _row(row: Row, noted: bool) -> str:
    return " & ".join([escape(row.name), *[escape(row.note)] * noted, *map(_cell, row.cells)])


def escape(text: str) -> str:
    printable = "".join(mark if mark.isprintable() else " " for mark in text)
    return printable.translate(ESCAPED)


def _cell(cell: Cell) -> str:
    number = f"\\textbf{{{escape(cell.number)}}}" if cell.best else escape(cell.number)
    smaller = [f"{{\\scriptsize {escape(part)}}}" for part in (cell.plus_minus, cell.beside) if part]
    return " ".join([number, *smaller]).strip()
