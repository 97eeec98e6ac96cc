"""The report as one HTML file, styles, pictures and thumbnails inside: it needs neither network nor folder."""

from collections.abc import Mapping, Sequence
from importlib.resources import files

from episodica.errors import not_installed
from episodica.report.content import Report
from episodica.report.figures.canvas import for_page


def html(report: Report, drawn: Mapping[str, str], title: str, introduction: Sequence[str]) -> str:
    """With each picture as SVG. Everything but style sheet and drawings is escaped: names come from folders."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup, escape
    except ImportError:
        raise not_installed("a report needs jinja2", "report") from None
    folder = files("episodica") / "report" / "templates"

    def breakable(name: str) -> Markup:
        return escape(name).replace("_", Markup("_<wbr>")).replace("=", Markup("=<wbr>"))

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["breakable"] = breakable
    template = environment.from_string((folder / "report.html").read_text())
    pictures = {name: Markup(for_page(svg, name)) for name, svg in drawn.items()}
    style = Markup((folder / "report.css").read_text())
    return template.render(report=report, title=title, introduction=introduction, drawn=pictures, css=style)
