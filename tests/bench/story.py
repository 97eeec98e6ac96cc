"""The story of a collection that grows: CIFAR-100 as folders, learned in eight batches, each deleted once learned.

    python tests/bench/story.py --data DIR --out DIR

For each method (`nrd`, `erd`, and `ft` for comparison) a model learns ten classes a call by `episodica learn`, as
people do.
After each call the script asks the model about images that it never had: 100 of each class learned so far, and the 600
of each of twenty classes that never come. Started again, it continues. Writes `story.json` and `story.md` to the folder
of `--out`, which also holds the models; image folders exist only while they are learned.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from episodica.classifier.calibration import auroc, strangeness
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.summaries import percent
from episodica.classifier.trained_recogniser import TrainedRecogniser
from episodica.data.cache import Arrays
from episodica.data.cifar100 import CIFAR100
from episodica.data.sampling import draw_episodes
from episodica.files.atomic import write_json, write_text
from episodica.rng import generator
from episodica.types import Pool, Shape

BATCHES, CLASSES, UNSEEN, TEST = 8, 10, 20, 100
EPISODES = 1000
SUFFIX = {"accuracy": "", "false_rejects": "_false_rejects", "auroc": "_unknown_auroc"}
EPISODICA = Path(sys.executable).with_name("episodica")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with cifar-100-python")
    parser.add_argument("--out", type=Path, required=True, help="folder for models and results, not in a repository")
    parser.add_argument("--methods", nargs="+", default=["nrd", "erd", "ft"])
    parser.add_argument("--epochs", type=int, help="default: what `learn` chooses")
    parser.add_argument("--batches", type=int, default=BATCHES)
    asked = parser.parse_args()
    arrays = CIFAR100(root=asked.data).load()
    order = torch.randperm(len(arrays.class_names), generator=generator("story")).tolist()
    rows: dict[str, list[dict[str, Any]]] = {}
    for method in asked.methods:
        model, found = ModelFolder(asked.out / method), asked.out / f"{method}.json"
        rows[method] = json.loads(found.read_text()) if found.exists() else []
        for batch in range(len(rows[method]), asked.batches):
            classes = order[batch * CLASSES : (batch + 1) * CLASSES]
            if not model.exists or model.state().record.sessions <= batch:
                learn(model, arrays, classes, method, asked.epochs, asked.out / f"batch-{batch + 1}")
            seen, unseen = order[: (batch + 1) * CLASSES], order[-UNSEEN:]
            rows[method].append({"batch": batch + 1, **ask(model, arrays, seen, unseen)})
            write_json(found, rows[method])
            sys.stderr.write(f"{method} {json.dumps(rows[method][-1])}\n")
    write_json(asked.out / "story.json", rows)
    write_text(asked.out / "story.md", table(rows))


def learn(
    model: ModelFolder, arrays: Arrays, classes: list[int], method: str, epochs: int | None, folder: Path
) -> None:
    """Write a folder a class, run the command, delete the folders."""
    for c in classes:
        place = folder / arrays.class_names[c]
        place.mkdir(parents=True, exist_ok=True)
        for row in images_of(arrays, c)[TEST:]:
            Image.fromarray(np.asarray(arrays.images[row])).save(place / f"{row}.png")
            os.utime(place / f"{row}.png", (0, 0))  # an interrupted call is continued where its files are the same
    command = [EPISODICA, "learn", model.path, folder, "--method", method]
    command += ["--epochs", str(epochs)] if epochs else []
    subprocess.run(command, check=True)
    shutil.rmtree(folder)


def images_of(arrays: Arrays, c: int) -> list[int]:
    """In an order of their own; the first hundred are never given to a model."""
    rows = np.flatnonzero(arrays.labels == c)
    return rows[torch.randperm(len(rows), generator=generator("story", c)).numpy()].tolist()


def ask(model: ModelFolder, arrays: Arrays, seen: list[int], unseen: list[int]) -> dict[str, Any]:
    state = model.state()
    recogniser = state.recogniser()
    assert isinstance(recogniser, TrainedRecogniser)
    tests = {c: embedded(recogniser, arrays, images_of(arrays, c)[:TEST]) for c in seen}
    others = {c: embedded(recogniser, arrays, images_of(arrays, c)) for c in unseen}
    known, strangers = torch.cat(list(tests.values())), torch.cat(list(others.values()))
    names = [entry.name for entry in recogniser.known]
    labels = torch.tensor([names.index(arrays.class_names[c]) for c in seen]).repeat_interleave(TEST)
    measured = state.history[-1].measured
    assert measured is not None
    return {
        "classes": len(seen),
        "accuracy": float((recogniser.scores(known).argmax(1) == labels).float().mean()),
        "first_batch_alone": first_batch_alone(recogniser, tests, [arrays.class_names[c] for c in seen[:CLASSES]]),
        "forgetting": measured.forgetting,
        "unseen_20way": few_shot(recogniser, others, UNSEEN)["accuracy"],
        **{f"unseen_5way{SUFFIX[key]}": value for key, value in few_shot(recogniser, others, 5).items()},
        "unknown_auroc": auroc(*(recogniser.strange(vectors.numpy()).values for vectors in (known, strangers))),
        "false_rejects": float(recogniser.unknown(known.numpy()).mean()),
        "strangers_rejected": float(recogniser.unknown(strangers.numpy()).mean()),
        "megabytes": model.bytes() / 1e6,
    }


def first_batch_alone(recogniser: TrainedRecogniser, tests: dict[int, Tensor], names: list[str]) -> float:
    """The first ten classes told apart among themselves: what later batches cost them, like with like."""
    among = recogniser.among(names)
    right = [
        float((among.scores(vectors).argmax(1) == [entry.name for entry in among.known].index(name)).float().mean())
        for vectors, name in zip(list(tests.values())[:CLASSES], names, strict=True)
    ]
    return sum(right) / len(right)


def embedded(recogniser: TrainedRecogniser, arrays: Arrays, rows: list[int]) -> Tensor:
    return torch.from_numpy(recogniser.embed(np.asarray(arrays.images[rows])))


def few_shot(recogniser: TrainedRecogniser, classes: dict[int, Tensor], way: int) -> dict[str, float]:
    """Questions with five images a class, and whether images of the other unseen classes are called unknown."""
    table = torch.cat(list(classes.values()))
    rows = torch.arange(len(table)).split([len(vectors) for vectors in classes.values()])
    shape = Shape(way, 5, 15, EPISODES if way == 5 else EPISODES // 10)
    episodes = draw_episodes(Pool.of(dict(enumerate(rows))), shape, generator("story", way))
    owner = torch.arange(len(classes)).repeat_interleave(torch.tensor([len(part) for part in rows]))
    right, near, far = [], [], []
    for episode in episodes.rows:
        points, queries = table[episode[:, :5]].mean(1), table[episode[:, 5:]].flatten(0, 1)
        scores = recogniser.scores_among(points[None], queries[None])[0]
        right.append((scores.argmax(1) == torch.arange(way).repeat_interleave(15)).float().mean())
        near.append(strangeness(recogniser.distances(points[None], queries[None])[0], torch.full((way,), 5.0))[1])
        outside = (~torch.isin(owner, owner[episode[:, 0]])).nonzero().flatten()
        if len(outside):
            strangers = table[outside[:: max(1, len(outside) // 75)]]
            distances = recogniser.distances(points[None], strangers[None])[0]
            far.append(strangeness(distances, torch.full((way,), 5.0))[1])
    found = {"accuracy": float(torch.stack(right).mean())}
    limit = recogniser.calibration.remembered
    if limit is not None:
        found["false_rejects"] = float((torch.cat(near) > limit).float().mean())
    if far:
        pairs = zip(near, far, strict=True)
        found["auroc"] = sum(auroc(known.numpy(), unknown.numpy()) for known, unknown in pairs) / len(far)
    return found


def table(rows: dict[str, list[dict[str, Any]]]) -> str:
    columns = {
        "accuracy": "all classes so far",
        "first_batch_alone": "first ten, among themselves",
        "unseen_5way": "unseen, 5-way",
        "unseen_20way": "unseen, 20-way",
        "unknown_auroc": "unknown AUROC",
        "false_rejects": "false rejects",
    }
    lines = [f"| method | classes | {' | '.join(columns.values())} |", "|---" * (len(columns) + 2) + "|"]
    for method, found in rows.items():
        lines += [
            f"| {method} | {row['classes']} | {' | '.join(percent(row[key]) for key in columns)} |" for row in found
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
