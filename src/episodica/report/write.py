"""A report on run folders: one page of HTML, the same as Markdown, every table as CSV and LaTeX, every picture."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from episodica.errors import InputError
from episodica.files.door import Folder
from episodica.report.build import build
from episodica.report.content import Part, Report
from episodica.report.culprits import without_culprits
from episodica.report.discovery import find_runs
from episodica.report.figures.canvas import ENDINGS, save
from episodica.report.formats.csv import as_csv
from episodica.report.formats.html import html
from episodica.report.formats.latex import latex
from episodica.report.formats.markdown import escape, markdown
from episodica.report.paper import ABOUT

MOST_DRAWN = 2**28  # bytes of a picture
TITLE = "Report"
INTRODUCTION = (
    "Accuracy in %, with its 95 % interval: over repeats where there are several (Student's t over orders, or over the "
    "seeds of one order), else over episodes.",
    f"Beside our numbers stand the paper's, and the difference of ours to them. {ABOUT}",
)


def write_report(folders: Sequence[Path], out: Path, *, images: bool = False, maps: bool = False) -> Path:
    found = find_runs(folders)
    folder = Folder(out)
    try:
        folder.make()
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror}; choose another folder") from None
    try:
        _write(build(found, images, maps), folder)
    except (InputError, OSError):
        raise
    except Exception:
        with TemporaryDirectory() as aside:
            shown = without_culprits(found, lambda one: _write(build(one, images, maps), Folder(Path(aside))))
        if shown == found:
            raise
        _write(build(shown, images, maps), folder)
    return out / "report.html"


def _write(report: Report, folder: Folder) -> None:
    for table in report.tables:
        (folder / "tables").write_text(f"{table.name}.csv", as_csv(table))
        (folder / "tables").write_text(f"{table.name}.tex", latex(table))
    drawn = {}
    for picture in report.pictures:
        save(picture.figure, folder / "figures", picture.name, ENDINGS)
        drawn[picture.name] = (folder / "figures").read(f"{picture.name}.svg", MOST_DRAWN).decode()
    folder.write_text("report.md", _markdown(report))
    folder.write_text("report.html", html(report, drawn, TITLE, INTRODUCTION))


def _markdown(report: Report) -> str:
    parts = [f"# {TITLE}", *INTRODUCTION]
    for section in report.sections:
        parts += [f"## {escape(section.heading)}", *(_part(part) for part in section.parts)]
    return "\n\n".join(parts) + "\n"


def _part(part: Part) -> str:
    tables = [f"**{escape(table.title)}**\n\n{markdown(table)}".rstrip() for table in part.tables]
    pictures = [f"![{escape(one.caption)}](figures/{one.name}.svg)" for one in part.pictures]
    strips = ["The images are in report.html."] if part.strips else []
    return "\n\n".join(
        filter(None, [part.heading and f"### {escape(part.heading)}", escape(part.about), *tables, *pictures, *strips])
    )
