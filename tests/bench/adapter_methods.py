"""Which method should train an adapter over a frozen encoder: each against the encoder as it is, on the same images.

    python tests/bench/adapter_methods.py --photos DIR --birds DIR --cifar DIR --out OUT

Of each set 20 classes with 15 images are drawn, embedded once by EfficientNet-Lite0 and compared as `learn --adapt
auto` does: a third of the images and a third of the classes left out, three times in turn. A way is a method, and
fields of it after colons: `erd`, `nrd:lr=0.005`. OUT keeps the embeddings.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import torch

from episodica.classifier import adapter_training
from episodica.classifier.adaptation import Comparison, compared_with_training
from episodica.classifier.exact_state import ExactState
from episodica.classifier.learn import learn
from episodica.classifier.model_folder import ModelFolder
from episodica.classifier.options import LearnOptions
from episodica.classifier.plan import plan_call
from episodica.config import RunConfig, resolve
from episodica.data.cifar100 import CIFAR100
from episodica.data.decode import Encoded
from episodica.data.glyph_drawing import draw
from episodica.files.door import Folder
from episodica.rng import generator

CLASSES, IMAGES = 20, 15
GLYPHS, OF_A_GLYPH, OF_A_CIFAR_CLASS, SIDE = 96, 40, 60, 32  # to draw from
SEEDS = 1000  # apart: those of the three trainings of a comparison

one_session = adapter_training._config


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, help="folder with a sub-folder of images for each class")
    parser.add_argument("--birds", type=Path, help="CUB_200_2011/images")
    parser.add_argument("--cifar", help="folder with cifar-100-python")
    parser.add_argument("--out", type=Path, required=True, help="folder for embeddings, not in a repository")
    parser.add_argument("--sets", nargs="+", default=["birds", "glyphs", "cifar100", "photos"])
    parser.add_argument("--ways", nargs="+", default=["erd", "nrd:lr=0.05", "nrd:lr=0.005"])
    parser.add_argument("--draws", type=int, default=1, help="of classes and images")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.out.mkdir(parents=True, exist_ok=True)
    for number in range(asked.draws):
        for name in asked.sets:
            kept = asked.out / f"points-{name}-{number}.npz"
            if not kept.exists():
                np.savez(kept, allow_pickle=False, **embedded(drawn(read(name, asked), name, number)))
            classes = dict(np.load(kept))
            for way in asked.ways:
                found = compared(classes, way)
                what = f"held-out images {found.held_out}, unseen classes {found.unseen}"
                sys.stdout.write(f"{name} {number}  {way}  {what}\n")
                sys.stdout.flush()


def read(name: str, asked: argparse.Namespace) -> Mapping[str, Sequence[Encoded]]:
    """The images of every class that has enough of them."""
    if name == "glyphs":
        images = draw(GLYPHS, OF_A_GLYPH, SIDE, 0)[0].reshape(GLYPHS, OF_A_GLYPH, SIDE, SIDE, 3)
        return {f"glyph{c:02}": list(of_class) for c, of_class in enumerate(images)}
    if name == "cifar100":
        arrays = CIFAR100(root=asked.cifar).load()
        rows = {text: np.flatnonzero(arrays.labels == c) for c, text in enumerate(arrays.class_names)}
        return {text: list(np.asarray(arrays.images[of_class[:OF_A_CIFAR_CLASS]])) for text, of_class in rows.items()}
    folders = sorted(path for path in (asked.photos if name == "photos" else asked.birds).iterdir() if path.is_dir())
    found = {path.name: sorted(path.glob("*.jpg")) for path in folders}
    return {text: files for text, files in found.items() if len(files) >= IMAGES}


def drawn(classes: Mapping[str, Sequence[Encoded]], name: str, number: int) -> dict[str, list[Encoded]]:
    g, names = generator("adapters", name, number), list(classes)
    chosen = [names[i] for i in torch.randperm(len(names), generator=g)[:CLASSES].tolist()]
    return {c: [classes[c][i] for i in torch.randperm(len(classes[c]), generator=g)[:IMAGES].tolist()] for c in chosen}


def embedded(arriving: Mapping[str, Sequence[Encoded]]) -> dict[str, np.ndarray]:
    """The points that `learn` makes of the images."""
    options = LearnOptions(overrides={"backbone.name": "efficientnet_lite"})
    with TemporaryDirectory() as place:
        folder = ModelFolder(Path(place) / "model")
        with folder.writing():
            state = learn(folder, plan_call(folder, arriving, options), lambda event: None)
        assert isinstance(state, ExactState)
        return {name: np.array(points) for name, points in state.statistics.classes.items()}


def compared(classes: Mapping[str, np.ndarray], way: str) -> Comparison:
    with TemporaryDirectory() as place, patch.object(adapter_training, "_config", session_of(way)):
        train = adapter_training.Training(Folder(Path(place)), lambda event: None, lambda: False)
        found = compared_with_training(classes, lambda part, i: train(part, seed=SEEDS * (i + 1)))
    assert found is not None
    return found


def session_of(way: str) -> Callable[[int, int, int, int], RunConfig]:
    """As the adapter is trained, but by another method: with the same images, steps and shape of a step."""
    method, *settings = way.split(":")
    if method == "erd":
        return one_session

    def config(new: int, past: int, fewest: int, seed: int) -> RunConfig:
        fields = {key: float(value) for key, value in (setting.split("=") for setting in settings)}
        tree = one_session(new, past, fewest, seed).tree()
        return resolve({**tree, "method": {"name": method, "turned": 0.0, **fields}})

    return config


if __name__ == "__main__":
    main()
