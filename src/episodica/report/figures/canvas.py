"""What all pictures share: matplotlib where there is one, a calm style, colours, and how they are written.

In a page, ink becomes the page's own text colour, so that one picture serves a light and a dark one.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, wraps
from io import BytesIO
from itertools import cycle
from typing import Any, ParamSpec, TypeVar

from episodica.errors import not_installed
from episodica.files.door import Folder
from episodica.report.aggregate import Line

INK = "#1b1f24"
GROUND = "#fffffe"
PALETTE = (  # for all eyes
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f6fc9", "#8d9321",
)  # fmt: skip
BOUNDS = ("#8a8f98", "#6a7078")
METHODS = ("erd", "ida", "eiml", "ft", "icarl", "ucir", "podnet")  # have the same colour in every picture
ENDINGS = ("svg", "pdf", "png")
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "figure.facecolor": GROUND,
    "axes.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "svg.fonttype": "none",
    "svg.hashsalt": "episodica",
    "pdf.fonttype": 42,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Draws in our style; needs matplotlib."""

    @wraps(draw)
    def within(*args: P.args, **how: P.kwargs) -> R:
        try:
            from matplotlib import rc_context
        except ImportError:
            raise not_installed("pictures need matplotlib", "report") from None
        with rc_context(STYLE):
            return draw(*args, **how)

    return within


def grid(rows: int, columns: int, width: float, height: float, **shared: Any) -> tuple[Any, Any]:
    """A figure and its panels, [rows][columns]; width and height, in inches, are those of a panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def colours(lines: Sequence[Line]) -> list[str]:
    """Grey for bounds; a method of the paper that occurs once has its own colour, the others what is left."""
    methods = Counter(line.config.method.name for line in lines)
    own = {name: shade for name, shade in zip(METHODS, PALETTE, strict=False) if methods[name] == 1}
    left = cycle([shade for shade in PALETTE if shade not in own.values()] or PALETTE)
    grey = cycle(BOUNDS)
    return [next(grey) if line.bound else own.get(line.config.method.name) or next(left) for line in lines]


@styled
def save(figure: Any, folder: Folder, name: str, endings: Sequence[str]) -> None:
    for ending in endings:
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
        draw = partial(figure.savefig, format=ending, dpi=150, metadata=dated)
        folder.remove_leftovers_of(f"{name}.{ending}")
        folder.write(f"{name}.{ending}", draw)
        figure.set_layout_engine("none")  # it stays where it was put: finding it takes as long as drawing


@styled
def png(figure: Any) -> bytes:
    """For whoever keeps pictures elsewhere."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def for_page(drawn: str, name: str) -> str:
    """A saved SVG to stand in a page: its ink, no ground of its own, no id that another picture may have."""
    text = drawn[drawn.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r'width="([\d.]+pt)" height="[\d.]+pt"', r'style="max-width: calc(1.2 * \1)"', text, count=1)
    return text.replace(INK, "currentColor").replace(GROUND, "none")
