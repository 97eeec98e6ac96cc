"""Pictures as text: what is drawn with colours that have a name, so that light and dark pages can set them.

A picture shown as an image follows the reader's system; one that is a part of a page follows the page (`page_style`).
"""

import base64
from html import escape
from io import BytesIO

import numpy as np
from PIL import Image

WIDTH = 480  # narrow, so that its text can be read on a phone
LIGHT = {
    "ink": "#16202c", "soft": "#5a6776", "line": "#b9c3ce", "wash": "#eef2f7",
    "new": "#1f5fbf", "past": "#d55e00", "gone": "#8d99a6", "good": "#00805e",
}  # fmt: skip
DARK = {
    "ink": "#e8edf3", "soft": "#a3b0bf", "line": "#4b5b6f", "wash": "#202a35",
    "new": "#7db3ff", "past": "#ff9d5c", "gone": "#77869a", "good": "#4fc9a3",
}  # fmt: skip


def _rule(selector: str, colours: dict[str, str]) -> str:
    return f"{selector} {{ {' '.join(f'--{name}: {value};' for name, value in colours.items())} }}"


def page_style() -> str:
    """For a page whose colours a reader may switch."""
    light, dark = '[data-md-color-scheme="default"] svg.drawn', '[data-md-color-scheme="slate"] svg.drawn'
    return f"{_rule(light, LIGHT)}\n{_rule(dark, DARK)}\n"


class Canvas:
    """Collects what is drawn; `x` to the right, `y` down, colours by name."""

    def __init__(self, height: int, title: str) -> None:
        self.height, self.title = height, title
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, words: str, *, colour: str = "ink", size: float = 14, anchor: str = "start",
        bold: bool = False,
    ) -> None:  # fmt: skip
        weight = ' font-weight="650"' if bold else ""
        self._add(
            f'<text x="{x:g}" y="{y:g}" fill="var(--{colour})" font-size="{size:g}" text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, *, colour: str = "line", fill: str = "none",
        dashed: bool = False, thick: float = 1.5,
    ) -> None:  # fmt: skip
        filled = f"var(--{fill})" if fill != "none" else "none"
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        self._add(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{filled}" '
            f'stroke="var(--{colour})" stroke-width="{thick:g}"{dashes}/>'
        )

    def line(
        self, points: list[tuple[float, float]], *, colour: str = "soft", thick: float = 1.5, dashed: bool = False
    ) -> None:
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        self._add(f'<path d="{path}" fill="none" stroke="var(--{colour})" stroke-width="{thick:g}"{dashes}/>')

    def arrow(self, start: tuple[float, float], end: tuple[float, float], *, colour: str = "soft") -> None:
        """The head is drawn too: a marker would need a name that no other picture of a page has."""
        (x, y), length = end, float(np.hypot(end[0] - start[0], end[1] - start[1]))
        ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        back = (x - 8 * ux, y - 8 * uy)
        self.line([start, back], colour=colour)
        left, right = (back[0] - 4 * uy, back[1] + 4 * ux), (back[0] + 4 * uy, back[1] - 4 * ux)
        corners = " ".join(f"{px:.1f},{py:.1f}" for px, py in ((x, y), left, right))
        self._add(f'<polygon points="{corners}" fill="var(--{colour})"/>')

    def dot(self, x: float, y: float, radius: float, *, colour: str, hollow: bool = False) -> None:
        fill = "none" if hollow else f"var(--{colour})"
        self._add(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="var(--{colour})" stroke-width="1.5"/>'
        )

    def tile(
        self, x: float, y: float, side: float, image: np.ndarray, *, frame: str | None = None, faded: bool = False
    ) -> None:
        """A real image [H, W, 3], with a frame in the colour of its role."""
        file = BytesIO()
        Image.fromarray(image).save(file, "WEBP", quality=60, method=6)
        encoded = base64.b64encode(file.getvalue()).decode()
        opacity = ' opacity="0.25"' if faded else ""
        self._add(
            f'<image x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}"{opacity} '
            f'href="data:image/webp;base64,{encoded}"/>'
        )
        if frame is not None:
            self._add(
                f'<rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" fill="none" '
                f'stroke="var(--{frame})" stroke-width="2.5"/>'
            )

    def svg(self) -> str:
        style = f"{_rule('svg.drawn', LIGHT)} @media (prefers-color-scheme: dark) {{ {_rule('svg.drawn', DARK)} }}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn" role="img" viewBox="0 0 {WIDTH} {self.height}" '
            f'font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif">'
        )
        return "\n".join(
            [head, f"<title>{escape(self.title)}</title>", f"<style>{style}</style>", *self.parts, "</svg>\n"]
        )

    def _add(self, part: str) -> None:
        self.parts.append(part)
