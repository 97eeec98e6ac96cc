"""A report as data: sections of parts, each with tables, a picture or thumbnails. Markdown and HTML lay it out."""

from dataclasses import dataclass
from typing import Any

from episodica.report.cells import Table


@dataclass(frozen=True)
class Picture:
    name: str  # of its files
    caption: str
    figure: Any  # of matplotlib


@dataclass(frozen=True)
class Strip:
    """Small images of one class in a row, as a data URI."""

    name: str
    image: str


@dataclass(frozen=True)
class Part:
    heading: str
    about: str = ""
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    strips: tuple[Strip, ...] = ()


@dataclass(frozen=True)
class Section:
    title: str
    tags: tuple[str, ...]
    parts: tuple[Part, ...]
    scale: float = 1.0

    @property
    def heading(self) -> str:
        return ", ".join((self.title, *self.tags))


@dataclass(frozen=True)
class Report:
    sections: tuple[Section, ...]

    @property
    def tables(self) -> list[Table]:
        return [table for section in self.sections for part in section.parts for table in part.tables]

    @property
    def pictures(self) -> list[Picture]:
        return [picture for section in self.sections for part in section.parts for picture in part.pictures]
