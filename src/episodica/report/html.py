"""The report as one HTML file, styles, pictures and thumbnails inside: it needs neither network nor folder."""

from collections.abc import Sequence
from importlib.resources import files

from episodica.errors import InputError
from episodica.report.content import Report
from episodica.report.figures.canvas import for_page


def html(report: Report, title: str, introduction: Sequence[str]) -> str:
    """Everything but our own style sheet and drawings is escaped: names come from folders."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup, escape
    except ImportError:
        raise InputError("a report needs jinja2: pip install 'episodica[report]'") from None
    folder = files("episodica") / "report" / "templates"

    def breakable(name: str) -> Markup:
        return escape(name).replace("_", Markup("_<wbr>")).replace("=", Markup("=<wbr>"))

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["breakable"] = breakable
    template = environment.from_string((folder / "report.html").read_text())
    drawn = {picture.name: Markup(for_page(picture.figure, picture.name)) for picture in report.pictures}
    style = Markup((folder / "report.css").read_text())
    return template.render(report=report, title=title, introduction=introduction, drawn=drawn, css=style)
