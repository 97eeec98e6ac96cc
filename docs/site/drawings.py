"""Draws the pictures of docs/concepts.md. Tiles are images of the data set glyphs, curves are of committed runs.

python docs/site/drawings.py        # or: make drawings
"""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import yaml

from canvas import WIDTH, Canvas
from episodica.data.glyph_drawing import draw

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "images" / "concepts"
LONG = ROOT / "docs" / "results" / "runs" / "long"
ALPHABET = 16  # characters, which follow each other in the data set
CLASSES, EACH, PIXELS, SEED = 5 * ALPHABET, 4, 32, 3
IMAGES = draw(CLASSES, EACH, PIXELS, SEED)[0].reshape(CLASSES, EACH, PIXELS, PIXELS, 3)
TASKS = [(ALPHABET * task + 3, ALPHABET * task + 4, ALPHABET * task + 10) for task in (0, 2, 3)]
UNSEEN = [ALPHABET * alphabet + 14 for alphabet in range(5)]


def stream() -> Canvas:
    """Classes arrive task after task; a few exemplars stay."""
    canvas = Canvas(372, "A stream of three tasks: images come and go, a few exemplars of each class stay")
    column, side = 160, 30
    for session in range(3):
        left = session * column + 4
        canvas.text(left, 18, f"Session {session + 1}", bold=True)
        canvas.text(left, 38, "new classes arrive", colour="new", size=13)
        for row, place in product(range(3), range(4)):
            image = IMAGES[TASKS[session][row], place]
            canvas.tile(left + place * 35, 48 + row * 35, side, image, frame="new")
        canvas.arrow((left + 67, 156), (left + 67, 186))
        canvas.box(left + 17, 188, 100, 32, fill="wash", colour="ink")
        canvas.text(left + 67, 209, "the model", anchor="middle")
        if session < 2:
            canvas.arrow((left + 119, 204), (left + column + 15, 204))
        canvas.arrow((left + 67, 222), (left + 67, 252))
        canvas.text(left, 268, "the memory keeps", colour="past", size=13)
        for seen, kept in product(range(3 * (session + 1)), range(2)):
            image = IMAGES[TASKS[seen // 3][seen % 3], kept]
            x, y = left + (seen // 3) * 48 + kept * 22, 278 + (seen % 3) * 24
            canvas.tile(x, y, 19, image, frame="past")
    canvas.text(4, 366, "All other images of a task are gone when the next one begins.", colour="soft", size=13)
    return canvas


def episode() -> Canvas:
    """Five classes that were never trained on, one image of each, and questions."""
    canvas = Canvas(300, "An episode: five classes with one image each, and three images to recognise")
    canvas.text(4, 18, "Support: one image of each of five classes", bold=True)
    canvas.text(4, 37, "“5-way 1-shot”; the model has never seen these classes", colour="soft", size=13)
    middles = [48 + place * 92 for place in range(5)]
    for middle, label, letter in zip(middles, UNSEEN, "ABCDE", strict=True):
        canvas.tile(middle - 30, 50, 60, IMAGES[label, 0], frame="new")
        canvas.text(middle, 128, letter, anchor="middle", bold=True, colour="new")
    questions = ((0, 1), (2, 3), (3, 1))
    for place, (answer, image) in enumerate(questions):
        x = 94 + place * 146
        canvas.arrow((x, 206), (middles[answer], 136), colour="soft")
        canvas.tile(x - 30, 208, 60, IMAGES[UNSEEN[answer], image], frame="gone")
        canvas.text(x + 36, 242, "?", bold=True, size=18)
    canvas.text(4, 292, "Queries: each gets the class that lies nearest.", bold=True)
    return canvas


def sub_episodes() -> Canvas:
    """The two few-shot problems of a step of ERD."""
    canvas = Canvas(330, "A step of ERD: the cross-task sub-episode and the exemplar sub-episode")
    current, past = [*TASKS[2], TASKS[2][2] + 1], [*TASKS[0], *TASKS[1]]
    _problem(canvas, 0, "Cross-task sub-episode", "new classes, and exemplars of past ones", [*current, past[0]], 4)
    _problem(canvas, 122, "Exemplar sub-episode", "exemplars of past classes alone", past[1:], 0)
    canvas.box(4, 256, 222, 68, fill="wash", colour="ink")
    canvas.text(115, 280, "the model in training", anchor="middle", bold=True)
    canvas.text(115, 302, "solves the first one: L_meta", anchor="middle", size=13)
    canvas.box(254, 256, 222, 68, fill="wash", colour="gone", dashed=True)
    canvas.text(365, 280, "the previous model", anchor="middle", bold=True)
    canvas.text(365, 302, "frozen: its answers are kept", anchor="middle", size=13)
    canvas.arrow((254, 290), (226, 290), colour="past")
    return canvas


def _problem(canvas: Canvas, top: float, title: str, about: str, classes: list[int], current: int) -> None:
    canvas.text(4, top + 18, title, bold=True)
    canvas.text(4, top + 37, about, colour="soft", size=13)
    for place, label in enumerate(classes):
        frame = "new" if place < current else "past"
        canvas.tile(4 + place * 56, top + 48, 46, IMAGES[label, 0], frame=frame)
    term = "both answer; KL_m is the" if current else "both answer; KL_e is the"
    canvas.text(296, top + 66, term, size=13, colour="past")
    canvas.text(296, top + 84, "difference of the answers", size=13, colour="past")


def forgetting() -> Canvas:
    """Measured: the classes of the first task, session after session."""
    canvas = Canvas(300, "Accuracy on the classes of the first task, session after session, with FT and with ERD")
    curves = {method: _first_task(method) for method in ("erd", "ft", "joint")}
    left, right, top, bottom, low, high = 44, 400, 44, 250, 0.2, 0.7
    sessions = len(curves["erd"])

    def place(session: int, accuracy: float) -> tuple[float, float]:
        x = left + (right - left) * session / (sessions - 1)
        return round(x, 1), round(bottom - (bottom - top) * (accuracy - low) / (high - low), 1)

    canvas.text(4, 18, "Accuracy on the classes of task 1, %", bold=True)
    for tick in (20, 30, 40, 50, 60, 70):
        (x, y), end = place(0, tick / 100), place(sessions - 1, tick / 100)
        canvas.line([(x, y), end], colour="line", thick=0.8)
        canvas.text(x - 8, y + 5, str(tick), anchor="end", size=13, colour="soft")
    for session in (1, 4, 8, 12, 16):
        canvas.text(place(session - 1, low)[0], bottom + 20, str(session), anchor="middle", size=13, colour="soft")
    canvas.text((left + right) / 2, bottom + 42, "session", anchor="middle", size=13, colour="soft")
    bound = place(0, curves["joint"][0])[1]
    canvas.line([(left, bound), (right, bound)], colour="gone", dashed=True)
    canvas.text(right + 8, bound + 1, "all classes", size=13, colour="soft")
    canvas.text(right + 8, bound + 16, "at once", size=13, colour="soft")
    for method, colour, name, lift in (("ft", "gone", "FT", 5), ("erd", "past", "ERD", 14)):
        points = [place(session, accuracy) for session, accuracy in enumerate(curves[method])]
        canvas.line(points, colour=colour, thick=2.5)
        for x, y in points:
            canvas.dot(x, y, 2.5, colour=colour)
        canvas.text(right + 8, points[-1][1] + lift, name, bold=True, colour=colour)
    return canvas


def _first_task(method: str) -> list[float]:
    """By session, as committed; seed 0, the first order of classes, one episode a step, exemplars as they are."""
    (run,) = (
        path for path in LONG.glob(f"{method}-*") if _is_first(yaml.safe_load((path / "config.yaml").read_text()))
    )
    return [session["per_task"][0]["mean"] for session in _results(run)["sessions"]]


def _is_first(config: dict) -> bool:
    first = (config["seed"], config["stream"]["seed"], config["train"]["episodes_per_step"]) == (0, 0, 1)
    return first and config["memory"].get("quality") is None


def _results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def frozen_encoder() -> Canvas:
    """What `learn` does with photographs."""
    canvas = Canvas(250, "Images become points, points become sums, and a class can be taken out of them again")
    canvas.text(4, 18, "Images", bold=True)
    for row, place in product(range(3), range(3)):
        canvas.tile(4 + place * 35, 32 + row * 42, 30, IMAGES[TASKS[row][1], place])
    canvas.arrow((114, 89), (140, 89))
    canvas.box(142, 56, 92, 66, fill="wash", colour="ink")
    canvas.text(188, 84, "encoder", anchor="middle", bold=True)
    canvas.text(188, 103, "never trained", anchor="middle", size=12.5, colour="soft")
    canvas.arrow((236, 89), (262, 89))
    canvas.text(266, 18, "Points and class means", bold=True)
    canvas.box(266, 28, 210, 130)
    clouds = (("new", (310, 66)), ("good", (370, 124)), ("past", (432, 62)))
    spots = ((-16, 7), (-9, -13), (2, 17), (13, -6), (18, 11))
    for colour, (x, y) in clouds:
        for dx, dy in spots:
            canvas.dot(x + dx, y + dy, 3, colour=colour, hollow=True)
        canvas.dot(x, y, 7, colour=colour)
    canvas.text(4, 188, "learn", bold=True, colour="new")
    canvas.text(76, 188, "adds points to sums: in any order, call by call")
    canvas.text(4, 212, "classify", bold=True, colour="new")
    canvas.text(76, 212, "takes the nearest mean; far from all: unknown")
    canvas.text(4, 236, "forget", bold=True, colour="new")
    canvas.text(76, 236, "takes the points out again: nothing is left")
    return canvas


DRAWINGS: dict[str, Callable[[], Canvas]] = {
    "stream": stream,
    "episode": episode,
    "sub_episodes": sub_episodes,
    "forgetting": forgetting,
    "frozen_encoder": frozen_encoder,
}
assert WIDTH == 480, "the drawings are laid out for this width"


if __name__ == "__main__":
    PLACE.mkdir(parents=True, exist_ok=True)
    for name, drawing in DRAWINGS.items():
        (PLACE / f"{name}.svg").write_text(drawing().svg())
        print(PLACE.relative_to(ROOT) / f"{name}.svg")
