"""Which method `learn` should train new models with: models of few classes with few images each, side by side.

    python tests/bench/learn_methods.py --data DIR --log FILE

A draw chooses classes and images of glyphs or of CIFAR-100 anew. Each way learns the same folders in two calls, one
after another within a draw, and is asked about 20 other images of each class and about ten classes that never came.
A way is a method, and settings after colons: `nrd`, `erd`, `nrd:method.turned=0.5`. Differences are paired by draw.
Started again, it goes on behind the last line of its log.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import LearnOptions
from episodica.classifier.plan import plan_call
from episodica.classifier.trained_recogniser import TrainedRecogniser
from episodica.data.cifar100 import CIFAR100
from episodica.data.glyph_drawing import draw
from episodica.data.sampling import draw_episodes
from episodica.report.aggregate import student
from episodica.rng import generator
from episodica.types import Pool, Shape

ASKED, OTHERS, UNSEEN, EPISODES = 20, 60, 10, 400
MEASURES = {
    "first": "all classes, first call",
    "second": "all classes, second call",
    "kept": "those of the first call among themselves",
    "one_shot": "unseen, 5-way 1-shot",
    "five_shot": "unseen, 5-way 5-shot",
}

Sets = Mapping[int, np.ndarray]  # the images of each class


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with cifar-100-python")
    parser.add_argument("--sets", nargs="+", default=["glyphs", "cifar100"])
    parser.add_argument("--images", nargs="+", type=int, default=[2, 4], help="of each class")
    parser.add_argument("--classes", nargs="+", default=["5+5"], help="of the first call + of the second")
    parser.add_argument("--keep", type=int, help="images that each class leaves; default: that of `learn`")
    parser.add_argument("--ways", nargs="+", default=["nrd", "erd"], help="differences are to the last one")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--log", type=Path, required=True, help="a line of JSON for each model, not in a repository")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    images = {name: read(name, asked.data) for name in asked.sets}
    cases = list(product(asked.sets, asked.classes, asked.images))
    done = {tuple(line["case"]): line for line in logged(asked.log)}
    for number, one, place in product(range(asked.draws), range(len(cases)), range(len(asked.ways))):
        (name, classes, count), way = cases[one], asked.ways[place]
        case = (name, classes, count, asked.keep, way, number)
        if case not in done:
            calls = [int(n) for n in classes.split("+")]
            done[case] = {"case": case, **measured(images[name], calls, count, way, asked.keep, number)}
            with asked.log.open("a") as file:
                file.write(json.dumps(done[case]) + "\n")
    lines = [header(asked.ways)]
    for some in (*([case] for case in cases), cases):
        found = {
            way: [done[*case, asked.keep, way, number] for case in some for number in range(asked.draws)]
            for way in asked.ways
        }
        name, classes, count = some[0]
        lines.append(line_of(f"{name}, {classes} classes, {count} images" if len(some) == 1 else "all of these", found))
    sys.stdout.write("\n".join(lines) + "\n")


def logged(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def read(name: str, data: str) -> Sets:
    if name == "glyphs":
        images = draw(96, ASKED + 60, 32, 0)[0].reshape(96, ASKED + 60, 32, 32, 3)
        return dict(enumerate(images))
    arrays = CIFAR100(root=data).load()
    return {c: np.asarray(arrays.images[np.flatnonzero(arrays.labels == c)]) for c in range(100)}


def measured(
    images: Sets, calls: Sequence[int], count: int, way: str, keep: int | None, number: int
) -> dict[str, float]:
    """The same classes and images for all ways of a draw."""
    method, *settings = way.split(":")
    overrides = {path: json.loads(value) for path, value in (setting.split("=") for setting in settings)}
    chosen_method: Any = method
    options = LearnOptions(method=chosen_method, keep=keep, overrides=overrides | {"backbone.name": "conv4"})
    g = generator("learn methods", number)
    chosen = [list(images)[i] for i in torch.randperm(len(images), generator=g)[: sum(calls) + UNSEEN].tolist()]
    shuffled = {c: images[c][torch.randperm(len(images[c]), generator=g).numpy()] for c in chosen}
    seen, others = chosen[: sum(calls)], [shuffled[c][:OTHERS] for c in chosen[sum(calls) :]]
    come = seen[: calls[0]], seen[calls[0] :]
    asked = {c: shuffled[c][:ASKED] for c in seen}
    with TemporaryDirectory() as place:
        folder = ModelFolder(Path(place) / "model")
        first, second = (
            taught(folder, {name_of(c): list(shuffled[c][ASKED : ASKED + count]) for c in part}, options)
            for part in come
        )
    among = second.among([name_of(c) for c in come[0]])
    vectors = [second.embed(of_class) for of_class in others]
    return {
        "first": accuracy(first, {c: asked[c] for c in come[0]}),
        "second": accuracy(second, asked),
        "kept": accuracy(among, {c: asked[c] for c in come[0]}),
        "one_shot": few_shot(second, vectors, 1),
        "five_shot": few_shot(second, vectors, 5),
    }


def taught(folder: ModelFolder, arriving: Mapping[str, list[np.ndarray]], options: LearnOptions) -> TrainedRecogniser:
    with folder.writing():
        learn(folder, plan_call(folder, arriving, options), lambda event: None)
    found = folder.state().recogniser()
    assert isinstance(found, TrainedRecogniser)
    return found


def name_of(c: int) -> str:
    return f"class {c:03}"


def accuracy(recogniser: TrainedRecogniser, asked: Sets) -> float:
    answers = {
        c: recogniser.scores(torch.from_numpy(recogniser.embed(images))).argmax(1) for c, images in asked.items()
    }
    right = [found.numpy() == recogniser.names.index(name_of(c)) for c, found in answers.items()]
    return float(np.concatenate(right).mean())


def few_shot(recogniser: TrainedRecogniser, classes: Sequence[np.ndarray], shots: int) -> float:
    table = torch.from_numpy(np.concatenate(classes))
    rows = torch.arange(len(table)).split([len(vectors) for vectors in classes])
    drawn = draw_episodes(Pool.of(dict(enumerate(rows))), Shape(5, shots, 15, EPISODES), generator("asked", shots)).rows
    points, queries = table[drawn[:, :, :shots]].mean(2), table[drawn[:, :, shots:]].flatten(1, 2)
    scores = recogniser.scores_among(points, queries)
    return float((scores.argmax(2) == torch.arange(5).repeat_interleave(15)).float().mean())


def header(ways: Sequence[str]) -> str:
    last = ways[-1]
    cells = [f"{text}: {' / '.join([*ways, *(f'{way} - {last}' for way in ways[:-1])])}" for text in MEASURES.values()]
    return f"| what | {' | '.join(cells)} |\n{'|---' * (len(cells) + 1)}|"


def line_of(what: str, found: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Means in %, and differences with 95 % intervals over draws (Student's t)."""
    *others, last = found
    cells = []
    for measure in MEASURES:
        values = {way: [100 * one[measure] for one in all_of_way] for way, all_of_way in found.items()}
        means = [f"{mean(of_way):.1f}" for of_way in values.values()]
        gains = [interval([a - b for a, b in zip(values[way], values[last], strict=True)]) for way in others]
        cells.append(" / ".join([*means, *gains]))
    return f"| {what} | {' | '.join(cells)} |"


def interval(gains: Sequence[float]) -> str:
    if len(gains) < 2:
        return f"{gains[0]:+.1f}"
    return f"{mean(gains):+.1f} ± {student(len(gains) - 1) * stdev(gains) / len(gains) ** 0.5:.1f}"


if __name__ == "__main__":
    main()
