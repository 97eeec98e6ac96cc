"""How many images of known classes a frozen encoder's model calls unknown, over random draws of what is known.

DATA has one sub-folder of images for each class. Of each draw, so many classes are learned, so many more are remembered
beside them from a few images, and the rest are strangers; of each class ten other images are asked.

    python docs/results/scripts/false_rejects.py DATA --learned 10 --images 20 --remembered 5 --shots 1
"""

import argparse
import json
from pathlib import Path

import numpy as np

from episodica.classifier.incoming.read import read_classes
from episodica.engine.image_encoder import ImageEncoder
from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import Statistics, points
from episodica.models.efficientnet_lite import EfficientNetLite

ASKED = 10  # images of each class


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--learned", type=int, default=10, help="classes")
    parser.add_argument("--images", type=int, default=20, help="of each class that is learned")
    parser.add_argument("--remembered", type=int, default=5, help="classes beside them")
    parser.add_argument("--shots", type=int, nargs="+", default=[1, 5], help="images of each class that is remembered")
    parser.add_argument("--draws", type=int, default=30)
    given = parser.parse_args()
    classes = embedded(given.data, given.images + ASKED)
    for shots in given.shots:
        found = [drawn(classes, given, shots, seed) for seed in range(given.draws)]
        means = {what: np.mean([one[what] for one in found]) for what in found[0]}
        errors = {what: 1.96 * np.std([one[what] for one in found]) / len(found) ** 0.5 for what in found[0]}
        print(
            json.dumps({"shots": shots} | {what: f"{means[what]:.1f} ± {errors[what]:.1f}" for what in means}, indent=1)
        )


def embedded(data: Path, least: int) -> dict[str, np.ndarray]:
    """The points of each class that has images enough. int16 [n, D]"""
    backbone = EfficientNetLite(train_="none")
    backbone.load_pretrained()
    encoder = ImageEncoder.of(backbone.eval())
    large = {name: paths for name, paths in read_classes(data).classes.items() if len(paths) >= least}
    return {name: points(encoder.embed(paths).vectors) for name, paths in large.items()}


def drawn(classes: dict[str, np.ndarray], given: argparse.Namespace, shots: int, seed: int) -> dict[str, float]:
    """In per cent; the three parts of what is rejected of remembered classes add up."""
    random = np.random.default_rng(seed)
    images = {name: random.permutation(classes[name]) for name in random.permutation(sorted(classes))}
    names = list(images)
    learned, others = names[: given.learned], names[given.learned :]
    remembered, strangers = others[: given.remembered], others[given.remembered :]
    known = {name: images[name][ASKED:][: given.images] for name in learned}
    known |= {name: images[name][ASKED:][:shots] for name in remembered}
    width = next(iter(images.values())).shape[1]
    classifier = ExactClassifier.fitted(Statistics.of(known, width))

    def rejected(asked: list[str]) -> np.ndarray:
        return classifier.unknown(np.concatenate([images[name][:ASKED] for name in asked]))

    nearest = classifier.scores(np.concatenate([images[name][:ASKED] for name in remembered])).argmax(1)
    right = nearest == np.repeat([classifier.names.index(name) for name in remembered], ASKED)
    of_learned = np.isin(nearest, [classifier.names.index(name) for name in learned])
    gone = rejected(remembered)
    shares = {
        "learned: rejected": rejected(learned),
        "remembered: nearest class is right": right,
        "remembered: rejected": gone,
        "of it, nearest class right": gone & right,
        "of it, nearest class a learned one": gone & of_learned,
        "of it, nearest class another remembered one": gone & ~right & ~of_learned,
        "strangers noticed": rejected(strangers),
    }
    return {what: 100 * float(share.mean()) for what, share in shares.items()}


if __name__ == "__main__":
    main()
