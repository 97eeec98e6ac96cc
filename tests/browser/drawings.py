"""Coloured drawings of everyday things, each time in another pose: pictures of our own for tests and docs."""

import io
import math
import random
from collections.abc import Callable

from PIL import Image, ImageDraw

SIDE, FINE = 256, 5  # pixels, and how much finer things are drawn than their unit square of 100 x 100
Point = tuple[float, float]
Box = tuple[float, float, float, float]


class Pen:
    """Draws in units of a hundredth, whatever the size of the picture."""

    def __init__(self, image: Image.Image) -> None:
        self._draw = ImageDraw.Draw(image)

    def polygon(self, points: list[Point], colour: str) -> None:
        self._draw.polygon([(x * FINE, y * FINE) for x, y in points], fill=colour)

    def line(self, points: list[Point], colour: str, width: int) -> None:
        self._draw.line([(x * FINE, y * FINE) for x, y in points], fill=colour, width=width * FINE)

    def oval(self, middle: Point, rx: float, ry: float, colour: str) -> None:
        self._draw.ellipse(scaled((middle[0] - rx, middle[1] - ry, middle[0] + rx, middle[1] + ry)), fill=colour)

    def box(self, box: Box, colour: str, round_by: int = 0) -> None:
        self._draw.rounded_rectangle(scaled(box), round_by * FINE, fill=colour)

    def half(self, box: Box, colour: str) -> None:
        self._draw.pieslice(scaled(box), 180, 360, fill=colour)

    def handle(self, box: Box, colour: str) -> None:
        self._draw.arc(scaled(box), 270, 90, fill=colour, width=7 * FINE)


def scaled(box: Box) -> Box:
    left, top, right, bottom = box
    return left * FINE, top * FINE, right * FINE, bottom * FINE


def apple(pen: Pen, rng: random.Random) -> None:
    colour = rng.choice(["#c8202b", "#d9402a", "#a81c2f"])
    pen.oval((38, 56), 24, 28, colour)
    pen.oval((62, 56), 24, 28, colour)
    pen.line([(50, 34), (54, 16)], "#5b3a1e", width=5)
    pen.polygon([(54, 24), (76, 12), (70, 30)], "#4f9d3a")
    pen.oval((32, 46), 5, 8, "#f3a29a")


def fish(pen: Pen, rng: random.Random) -> None:
    colour = rng.choice(["#2f7fbf", "#2a6fa8", "#3a94c9"])
    pen.polygon([(68, 50), (96, 28), (96, 72)], colour)
    pen.oval((42, 50), 34, 20, colour)
    pen.oval((44, 56), 26, 10, "#cfe6f5")
    pen.oval((22, 45), 5, 5, "#ffffff")
    pen.oval((21, 45), 2.5, 2.5, "#101010")


def house(pen: Pen, rng: random.Random) -> None:
    pen.box((22, 46, 78, 88), rng.choice(["#e8d2a0", "#f0e0c0", "#dcc08c"]))
    pen.polygon([(14, 48), (50, 14), (86, 48)], "#9c4a2f")
    pen.box((44, 62, 58, 88), "#5b3a1e")
    for x in (28, 64):
        pen.box((x, 54, x + 10, 64), "#8fc7e8")


def leaf(pen: Pen, rng: random.Random) -> None:
    colour = rng.choice(["#3f8f3a", "#5aa845", "#2f7d3c"])
    shape = [(50 + 30 * math.sin(t / 2) ** 1.3, 88 - 76 * t / (2 * math.pi)) for t in steps(2 * math.pi)]
    other = [(100 - x, y) for x, y in reversed(shape)]
    pen.polygon(shape + other, colour)
    pen.line([(50, 96), (50, 20)], "#1f5a2a", width=4)
    for y in (38, 52, 66):
        pen.line([(50, y + 8), (66, y - 4)], "#1f5a2a", width=2)
        pen.line([(50, y + 8), (34, y - 4)], "#1f5a2a", width=2)


def mushroom(pen: Pen, rng: random.Random) -> None:
    pen.box((40, 48, 60, 90), "#efe6d2", 8)
    pen.half((12, 14, 88, 90), rng.choice(["#c0392b", "#b03a5b", "#cf5a2c"]))
    for x, y in ((34, 36), (52, 26), (66, 40)):
        pen.oval((x, y), 6, 5, "#ffffff")


def boat(pen: Pen, rng: random.Random) -> None:
    pen.polygon([(14, 66), (86, 66), (72, 86), (28, 86)], "#6b4226")
    pen.line([(48, 66), (48, 12)], "#3a2a1a", width=4)
    pen.polygon([(52, 14), (82, 58), (52, 58)], rng.choice(["#ffffff", "#f5e9d0", "#ffe9a8"]))
    pen.polygon([(44, 22), (22, 58), (44, 58)], "#e86a5a")


def cup(pen: Pen, rng: random.Random) -> None:
    colour = rng.choice(["#6a4fb3", "#7d5fc4", "#59439c"])
    pen.handle((58, 42, 92, 74), colour)
    pen.polygon([(18, 34), (70, 34), (64, 86), (24, 86)], colour)
    pen.oval((44, 34), 26, 7, "#3b2416")


def sun(pen: Pen, rng: random.Random) -> None:
    for i in range(12):
        turn = math.tau * i / 12
        pen.line([(50, 50), (50 + 44 * math.cos(turn), 50 + 44 * math.sin(turn))], "#f0a500", width=5)
    pen.oval((50, 50), 25, 25, rng.choice(["#ffc928", "#ffb81c", "#ffd54a"]))


THINGS: dict[str, Callable[[Pen, random.Random], None]] = {
    thing.__name__: thing for thing in (apple, fish, house, leaf, mushroom, boat, cup, sun)
}
GROUNDS = ["#f4efe4", "#e3edf2", "#e9f2e1", "#f5e6e0", "#eceaf4", "#dfe7e3"]


def steps(end: float, count: int = 40) -> list[float]:
    return [end * i / count for i in range(count + 1)]


def drawing(thing: str, number: int, side: int = SIDE) -> Image.Image:
    """The same for the same thing and number, on every machine."""
    rng = random.Random(f"{thing} {number}")
    whole = Image.new("RGBA", (100 * FINE, 100 * FINE))
    THINGS[thing](Pen(whole), rng)
    turned = whole.rotate(rng.uniform(-22, 22), Image.Resampling.BICUBIC)
    reach = int(side * rng.uniform(0.62, 0.86))
    posed = turned.resize((reach, reach), Image.Resampling.LANCZOS)
    ground = Image.new("RGB", (side, side), rng.choice(GROUNDS))
    shade = ImageDraw.Draw(ground)
    for _ in range(5):
        x, y, r = rng.uniform(0, side), rng.uniform(0, side), rng.uniform(0.05, 0.2) * side
        shade.ellipse((x - r, y - r, x + r, y + r), fill=rng.choice(GROUNDS))
    room = side - reach
    ground.paste(posed, (int(rng.uniform(0, room)), int(rng.uniform(0, room))), posed)
    return ground


def encoded(thing: str, number: int, side: int = SIDE, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    drawing(thing, number, side).save(file, kind, **({"quality": 92} if kind == "JPEG" else {}))
    return file.getvalue()
