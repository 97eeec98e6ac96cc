"""The benchmark's sections as a table on the screen, as Markdown, and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from episodica.bench.section import Section
from episodica.bench.timing import Row

HEADINGS = ("ms", "ratio", "of peak")


def rendered(section: Section) -> RenderableType:
    table = Table(title=section.title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in section.rows:
        table.add_row(row.name, *cells(row))
    return Group(table, *section.notes, "")


def markdown(section: Section) -> str:
    lines = ["| " + " | ".join((section.title, *HEADINGS)) + " |", "|---|---:|---:|---:|"]
    lines += ["| " + " | ".join((row.name, *cells(row))) + " |" for row in section.rows]
    notes = [f"\n{note[0].upper()}{note[1:]}." for note in section.notes]
    return "\n".join([*lines, *notes]) + "\n"


def cells(row: Row) -> tuple[str, str, str]:
    ms = f"{row.ms:,.0f}" if row.ms >= 100 else f"{row.ms:.1f}"
    return ms, _cell(row.ratio, "{:.2f}"), _cell(row.of_peak, "{:.0%}")


def _cell(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def to_json(sections: Sequence[Section], machine: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "machine": machine,
        "asked": asked,
        "rows": [{"part": section.title, **asdict(row)} for section in sections for row in section.rows],
        "notes": {section.title: list(section.notes) for section in sections},
        "series": {section.title: dict(section.series) for section in sections if section.series},
    }
