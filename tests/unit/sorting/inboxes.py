"""A model that tells colours apart, inboxes of coloured squares, and what is where afterwards."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from episodica.classifier.recogniser import Answer, Places, Recogniser
from episodica.files.door import Folder
from episodica.files.placing import How
from episodica.sorting.ledger import Ledger
from episodica.sorting.looking import Model
from episodica.sorting.order import Order
from episodica.sorting.sort import Sorting

RED, GREEN, PALE = (250, 0, 0), (0, 250, 0), (90, 60, 0)  # pale red is not certain
BLUE, CYAN = (0, 0, 250), (0, 250, 250)  # unknown, and unlike each other


class Colours(Recogniser):
    """Knows red and green; what is blue is unknown."""

    image_size = 4

    def __init__(self, *names: str) -> None:
        self._names = names or ("red", "green")

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def embed(self, images: np.ndarray) -> np.ndarray:
        return images.astype(np.float32).mean((1, 2)) / 255

    def places(self, vectors: Any) -> Places:
        return Places(vectors, 0.2)

    def answers(self, vectors: Any) -> list[Answer]:
        return [self._colour(*map(float, vector)) for vector in vectors]

    def _colour(self, red: float, green: float, blue: float) -> Answer:
        best = self._names[0] if red >= green else self._names[1]
        certain = max(red, green) / max(red + green, 1e-6)
        return Answer(best, certain, blue > 0.5, {best: certain}, blue, 0.5)

    def only(self, support: Any) -> Any: ...
    def rejecting(self, rate: float) -> Any: ...
    def probabilities(self, vectors: Any) -> Any: ...
    def strange(self, vectors: Any) -> Any: ...


def paint(path: Path, colour: tuple[int, int, int], shade: int = 0) -> Path:
    """Squares of a colour; another shade is another file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), tuple(max(c - shade, 0) for c in colour)).save(path, "PNG")
    os.utime(path, ns=(10**18, 10**18))
    return path


def fill(inbox: Path) -> Path:
    """A bit of everything, with names that clash and content that is there twice."""
    paint(inbox / "a.png", RED)
    paint(inbox / "more/a.png", RED, 1)
    paint(inbox / "more/A.PNG", RED, 2)
    paint(inbox / "twin.png", RED, 1)
    paint(inbox / "b.png", GREEN)
    paint(inbox / "pale.png", PALE)
    for shade in range(2):
        paint(inbox / f"blue{shade}.png", BLUE, shade)
        paint(inbox / f"c/cyan{shade}.png", CYAN, shade)
    (inbox / "torn.png").write_bytes(paint(inbox / "torn.png", GREEN, 9).read_bytes()[:40])
    (inbox / "notes.txt").write_text("no image")
    return inbox


def order_for(tmp_path: Path, how: How = "copy", **more: Any) -> Order:
    order = Order(tmp_path / "inbox", Folder(tmp_path / "sorted"), how, **more)
    order.check()
    return order


@contextmanager
def sorting(order: Order, *names: str, **more: Any) -> Iterator[Sorting]:
    with Ledger.copy_of(order.to) if order.dry else Ledger.of(order.to) as ledger:
        yield Sorting(order, ledger, Model("1", Colours(*names), 0.7), **more)


def sort(order: Order, *names: str, **more: Any) -> None:
    with sorting(order, *names, **more) as one:
        one.to_the_end()


def tree(folder: Path) -> dict[str, bytes]:
    """Every file that a user sees, by its place."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(folder / ".sort"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def contents(*folders: Path) -> Counter[str]:
    """How often each image is there, wherever it is."""
    files = [data for folder in folders for name, data in tree(folder).items() if not name.endswith((".csv", ".txt"))]
    return Counter(blake2b(data).hexdigest() for data in files if data)  # an empty file keeps a name
