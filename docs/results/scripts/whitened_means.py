"""Compare ways to classify embeddings of a frozen EfficientNet-Lite0, on splits of a folder with one folder a class.

python docs/results/scripts/whitened_means.py FOLDER [CLASSES] [SPLITS]

CLASSES is a slice of the sorted folder names (`1::4`). In each split two thirds of the classes are learned from 20
images each, and their other images are asked for among all of them; the rest are unseen. Needs the extra `photos` and
scikit-learn.
"""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from torch import Tensor
from torch.nn.functional import normalize

from episodica import generator
from episodica.classifier.calibration import auroc
from episodica.engine.image_encoder import ImageEncoder
from episodica.learners.exact import ExactClassifier
from episodica.learners.statistics import Statistics, points
from episodica.models.efficientnet_lite import EfficientNetLite

TRAIN, MOST = 20, 50  # images of a class
EPISODES, QUERIES = 100, 10
PROJECTED = 5000  # random features of RanPAC (McDonnell et al. 2023)


def main(folder: str, classes: str = ":", splits: str = "3") -> None:
    chosen = slice(*(int(part) if part else None for part in classes.split(":")))
    vectors, labels = embedded(sorted(path for path in Path(folder).iterdir() if path.is_dir())[chosen])
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for split in range(int(splits)):
        for way, measured in one_split(vectors, labels, split).items():
            for what, value in measured.items():
                found[way, what].append(100 * value)
    columns = list(dict.fromkeys(what for _, what in found))
    print("| | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for way in dict.fromkeys(way for way, _ in found):
        cells = [found.get((way, what)) for what in columns]
        print(f"| {way} | " + " | ".join(f"{sum(c) / len(c):.1f}" if c else "-" for c in cells) + " |")


def embedded(folders: list[Path]) -> tuple[Tensor, Tensor]:
    backbone = EfficientNetLite()
    backbone.load_pretrained()
    encoder, vectors, labels = ImageEncoder.of(backbone), [], []
    for label, folder in enumerate(folders):
        found = encoder.embed(sorted(path for path in folder.iterdir() if path.is_file())[:MOST])
        vectors.append(found.vectors)
        labels += [label] * len(found.vectors)
    return torch.from_numpy(np.concatenate(vectors)), torch.tensor(labels)


def one_split(vectors: Tensor, labels: Tensor, split: int) -> dict[str, dict[str, float]]:
    g = generator("whitened_means", split)
    order = torch.randperm(int(labels.max()) + 1, generator=g)
    learned, unseen = order[: 2 * len(order) // 3].sort().values, order[2 * len(order) // 3 :]
    images = [rows[torch.randperm(len(rows), generator=g)] for rows in ((labels == c).nonzero()[:, 0] for c in learned)]
    train, test = torch.stack([rows[:TRAIN] for rows in images]), torch.cat([rows[TRAIN:] for rows in images])
    right = torch.searchsorted(learned, labels[test])
    strangers = torch.isin(labels, unseen).nonzero()[:, 0]
    kept, unit = points(vectors.numpy()), normalize(vectors)
    known = Statistics.of(
        {f"{c:05d}": kept[rows] for c, rows in zip(learned.tolist(), train, strict=True)}, kept.shape[1]
    )
    model, few_shot = ExactClassifier.fitted(known), ExactClassifier.for_other_classes(known)

    means = normalize(unit[train].mean(1))
    cosines = unit @ means.T
    sure = torch.from_numpy(model.probabilities(kept[test]))
    ways = {
        "class means, cosine": {
            "learned": hits(cosines[test], right),
            "unknown AUROC": auroc(-cosines[test].amax(1).numpy(), -cosines[strangers].amax(1).numpy()),
        },
        "whitened means": {
            "learned": hits(sure, right),
            "unknown AUROC": auroc(model.strangeness(kept[test]), model.strangeness(kept[strangers])),
            "called unknown: known": float(model.unknown(kept[test]).mean()),
            "unknown": float(model.unknown(kept[strangers]).mean()),
            "calibration error": calibration_error(sure, right),
        },
        **references(vectors, train, test, right, strangers, split),
    }
    for way, shots in ((5, 5), (5, 1), (10, 5), (10, 1)):
        if way <= len(unseen):
            episodes = [episode(labels, unseen, way, shots, g) for _ in range(EPISODES)]
            answers = [few_shot_hits(few_shot, kept, unit, rows, shots) for rows in episodes]
            ways["class means, cosine"][f"{way}-way {shots}-shot"] = sum(a for a, _ in answers) / EPISODES
            ways["whitened means"][f"{way}-way {shots}-shot"] = sum(b for _, b in answers) / EPISODES
    return ways


def references(
    vectors: Tensor, train: Tensor, test: Tensor, right: Tensor, strangers: Tensor, split: int
) -> dict[str, dict[str, float]]:
    places = torch.arange(len(train)).repeat_interleave(TRAIN)
    logistic = LogisticRegression(max_iter=200).fit(vectors[train.flatten()].numpy(), places.numpy())
    sure, strange = (torch.tensor(logistic.predict_proba(vectors[rows].numpy())) for rows in (test, strangers))
    projection = torch.randn(vectors.shape[1], PROJECTED, generator=generator("projection", split))
    projected = (normalize(vectors) @ projection).relu()
    ridge = RidgeClassifierCV([0.1, 1, 10, 100, 1000]).fit(projected[train.flatten()].numpy(), places.numpy())
    scores, stranger = (torch.tensor(ridge.decision_function(projected[rows].numpy())) for rows in (test, strangers))
    return {
        "random projection and ridge": {
            "learned": hits(scores, right),
            "unknown AUROC": auroc(-scores.amax(1).numpy(), -stranger.amax(1).numpy()),
        },
        "logistic regression": {
            "learned": hits(sure, right),
            "unknown AUROC": auroc(-sure.amax(1).numpy(), -strange.amax(1).numpy()),
            "calibration error": calibration_error(sure, right),
        },
    }


def episode(labels: Tensor, classes: Tensor, way: int, shots: int, g: torch.Generator) -> Tensor:
    rows = [(labels == c).nonzero()[:, 0] for c in classes[torch.randperm(len(classes), generator=g)[:way]]]
    return torch.stack([found[torch.randperm(len(found), generator=g)[: shots + QUERIES]] for found in rows])


def few_shot_hits(
    model: ExactClassifier, kept: np.ndarray, unit: Tensor, rows: Tensor, shots: int
) -> tuple[float, float]:
    """Of nearest means by cosine, and with what is known of the learned classes."""
    asked, right = rows[:, shots:].flatten(), torch.arange(len(rows)).repeat_interleave(QUERIES)
    nearest = unit[asked] @ normalize(unit[rows[:, :shots]].mean(1)).T
    whitened = model.with_classes({f"{i:02d}": kept[line[:shots]] for i, line in enumerate(rows)})
    return hits(nearest, right), hits(torch.from_numpy(whitened.scores(kept[asked])), right)


def hits(scores: Tensor, right: Tensor) -> float:
    return float((scores.argmax(1) == right).float().mean())


def calibration_error(probabilities: Tensor, right: Tensor) -> float:
    """How far probabilities and shares of right answers are apart, in ten bins."""
    sure, answers = probabilities.max(1)
    bins = (sure * 10).long().clamp(max=9)
    gaps = [((answers == right)[bins == b].double().sum() - sure[bins == b].double().sum()).abs() for b in range(10)]
    return float(torch.stack(gaps).sum() / len(right))


if __name__ == "__main__":
    main(*sys.argv[1:])
